package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// keyList is the page of API keys, and of connected applications on its first page.
type keyList struct {
	list[gen.ApiKey]
	Applications []store.Application
}

func (d *Dashboard) listKeys(p *page) error {
	l, err := d.api.ListApiKeys(p.ctx(), gen.ListApiKeysParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return err
	}
	v := keyList{list: list[gen.ApiKey]{Rows: l.Data, paging: p.paging(l.Cursor)}}
	apps, err := d.store.Applications(p.ctx(), p.user.AccountID)
	if err != nil {
		return err
	}
	v.Rows = slices.DeleteFunc(v.Rows, func(k gen.ApiKey) bool {
		return slices.ContainsFunc(apps, func(a store.Application) bool { return a.ID == k.ID })
	})
	if v.First == "" {
		v.Applications = apps
	}
	return p.show("keys", v)
}

// keyView is the page with the form for a new key.
type keyView struct {
	Presets []preset
	inboxPicker
	Form form
}

// inboxPicker offers the newest inboxes. MoreInboxes reports whether there are others.
type inboxPicker struct {
	Inboxes     []gen.Inbox
	MoreInboxes bool
}

func (d *Dashboard) inboxPicker(p *page) (inboxPicker, error) {
	l, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: limit()})
	if err != nil {
		return inboxPicker{}, err
	}
	return inboxPicker{l.Data, l.HasMore}, nil
}

// preset is a choice of permissions. A key with no scopes has all permissions.
type preset struct {
	Name, Title, Means string
	scopes             []gen.ApiKeyScope
}

// custom is the preset that takes the selected permissions.
const custom = "custom"

var presets = []preset{
	{"agent", "Agent", "Reads and sends messages in its inboxes, and waits for codes.", []gen.ApiKeyScope{"read", "send"}},
	{"send", "Send only", "Sends emails. Reads nothing.", []gen.ApiKeyScope{"emails:send"}},
	{"read", "Read only", "Reads inboxes, messages and emails. Sends and changes nothing.", []gen.ApiKeyScope{"read"}},
	{"full", "Full access", "Does everything, including managing keys and domains.", nil},
	{custom, "Custom", "You select the permissions.", nil},
}

func (d *Dashboard) newKey(p *page) error {
	in, err := d.inboxPicker(p)
	if err != nil {
		return err
	}
	first := url.Values{"preset": {presets[0].Name}, "inbox_ids": p.r.URL.Query()["inbox"]}
	return p.show("key-new", keyView{presets, in, p.formOf(first)})
}

func (d *Dashboard) createKey(p *page) error {
	req, err := d.keyRequest(p)
	var made *gen.ApiKeyCreated
	if err == nil {
		made, err = d.api.CreateApiKey(p.ctx(), req)
	}
	if err != nil {
		return p.again(err, d.newKey)
	}
	if p.form.Get("start") == "1" {
		return p.leaveSecret("/", nil, made.Key)
	}
	q := url.Values{"preset": {p.form.Get("preset")}}
	if len(made.InboxIds) > 0 {
		q.Set("inbox", made.InboxIds[0])
	}
	return p.leaveSecret("/keys/"+url.PathEscape(made.ID)+"/secret", q, made.Key)
}

// keyRequest returns the key of the form, without the empty fields. The error may be the
// problem of a field that the API does not know.
func (d *Dashboard) keyRequest(p *page) (*gen.ApiKeyCreate, error) {
	req := &gen.ApiKeyCreate{Name: p.field("name"), AllowedIps: listOf(p.form.Get("allowed_ips")), Mode: gen.NewOptApiKeyCreateMode(gen.ApiKeyCreateModeRestricted)}
	chosen := p.form.Get("preset")
	if i := slices.IndexFunc(presets, func(c preset) bool { return c.Name == chosen }); i >= 0 {
		req.Scopes = presets[i].scopes
	}
	if chosen == custom {
		for _, s := range p.form["scopes"] {
			req.Scopes = append(req.Scopes, gen.ApiKeyScope(s))
		}
		if len(req.Scopes) == 0 {
			return nil, fieldProblem("scopes", "Select at least one permission.")
		}
	}
	switch {
	case p.form.Get("test") != "":
		req.Mode = gen.NewOptApiKeyCreateMode(gen.ApiKeyCreateModeTest)
	case chosen == "full":
		req.Mode = gen.NewOptApiKeyCreateMode(gen.ApiKeyCreateModeLive)
	}
	ids, err := d.chosenInboxes(p)
	if err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		req.InboxIds = gen.NewOptNilStringArray(ids)
	}
	if at, ok := p.expiry(); ok {
		req.ExpiresAt = gen.NewOptNilDateTime(at)
	}
	req.Limits, err = limitsIn(p.form)
	return req, err
}

// chosenInboxes returns the IDs of the selected and the typed inboxes. The error may be
// the problem of an address that is not an inbox of the account.
func (d *Dashboard) chosenInboxes(p *page) ([]string, error) {
	ids := slices.Clone(p.form["inbox_ids"])
	for _, name := range listOf(p.form.Get("other_inboxes")) {
		id, err := d.inboxNamed(p, "inbox_ids", name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// expiry returns when a key or a connection expires; ok is false for never. A date means
// the end of that day.
func (p *page) expiry() (at time.Time, ok bool) {
	after := p.form.Get("expires")
	if days, err := strconv.Atoi(after); err == nil && days > 0 && days <= 3650 {
		return p.d.now().AddDate(0, 0, days), true
	}
	if day, err := time.Parse(time.DateOnly, p.form.Get("expires_at")); err == nil && after == "date" {
		return day.AddDate(0, 0, 1), true
	}
	return time.Time{}, false
}

// showSecret shows a key that was just created, with examples that use it: with its first
// inbox, or the newest one of the account.
func (d *Dashboard) showSecret(p *page) error {
	value, ok, err := p.takeSecret("/keys")
	if err != nil || !ok {
		return err
	}
	q := p.r.URL.Query()
	var examples []snippet
	if q.Get("preset") == "send" {
		domains, err := d.ownDomains(p)
		if err != nil {
			return err
		}
		examples = d.filled(sendExamples, "{domain}", append(domains, "example.com")[0])
	} else {
		l, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: gen.NewOptInt(1), IDPrefix: optional(q.Get("inbox"))})
		if err != nil {
			return err
		}
		examples = d.snippets(append(l.Data, gen.Inbox{})[0])
	}
	for i, s := range examples {
		if _, wait, ok := strings.Cut(s.Code, waitExample); ok && slices.Contains([]string{"read", custom}, q.Get("preset")) {
			examples[i].Code = waitExample + wait // the key may not be able to simulate a message
		}
	}
	return p.show("key-secret", struct {
		Value    string
		Snippets []snippet
	}{value, withKey(examples, value)})
}

// keyPage is the page of one key.
type keyPage struct {
	store.Key
	Inboxes []string // addresses, or IDs of deleted inboxes; nil: all
	LastIP  string   // client address of the last recorded request, or empty
	Form    form     // of the limits
	Control control
}

func (d *Dashboard) showKey(p *page) error {
	k, err := d.store.Key(p.ctx(), p.user.AccountID, p.id())
	if err != nil {
		return err
	}
	v := keyPage{Key: k}
	last, err := d.store.APIRequests(p.ctx(), p.user.AccountID, store.APIRequestFilter{Caller: k.ID}, store.Page{Limit: 1})
	if err != nil {
		return err
	}
	if len(last.Rows) > 0 {
		v.LastIP = last.Rows[0].IP
	}
	limits := url.Values{}
	if err := addLimits(limits, k.Bounds()); err != nil {
		return err
	}
	v.Form = p.formOf(limits)
	if k.InboxIDs != nil {
		addresses := map[string]string{}
		if err := p.addInboxes(addresses, k.InboxIDs.V...); err != nil {
			return err
		}
		v.Inboxes = textsOf(k.InboxIDs.V, func(id string) string { return cmp.Or(addresses[id], id) })
	}
	if v.Control, err = d.control(p, k.ID); err != nil {
		return err
	}
	return p.show("key", v)
}

// limitKey replaces the limits of a key.
func (d *Dashboard) limitKey(p *page) error {
	limits, err := limitsIn(p.form)
	if err == nil {
		_, err = d.api.UpdateApiKey(p.ctx(), &gen.ApiKeyUpdate{Limits: limits}, gen.UpdateApiKeyParams{APIKeyID: p.id()})
	}
	if err != nil {
		return p.again(err, d.showKey)
	}
	return p.done("/keys/"+url.PathEscape(p.id()), "Limits saved.")
}

func (d *Dashboard) revokeKey(p *page) error {
	text := "API key revoked."
	if p.form.Has("application") {
		text = "Application disconnected."
	}
	_, err := d.api.RevokeApiKey(p.ctx(), gen.RevokeApiKeyParams{APIKeyID: p.id()})
	return p.result(err, "/keys", "/keys", text)
}

// listOf splits a field that holds several values.
func listOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r <= ' ' })
}

// limitField is a limit, with its label.
type limitField struct{ Name, Label string }

var limitFields = []limitField{
	{"sends_per_minute", "Recipients per minute"},
	{"sends_per_hour", "Recipients per hour"},
	{"sends_per_day", "Recipients per day"},
	{"recipients_per_day", "Different recipients per day"},
	{"new_recipients_per_day", "New recipients per day"},
	{"per_recipient_per_day", "Messages to one recipient per day"},
	{"similar_per_hour", "Recipients of the same text per hour"},
}

// addLimits adds limits of the API or the store to the values of a form. Both have the
// same JSON.
func addLimits(values url.Values, limits any) error {
	b, err := json.Marshal(limits)
	if err != nil {
		return err
	}
	var all map[string]any
	read := json.NewDecoder(bytes.NewReader(b))
	read.UseNumber()
	if err := read.Decode(&all); err != nil {
		return err
	}
	for name, v := range all {
		values.Set(name, fmt.Sprint(v))
	}
	return nil
}

// limitsIn returns the limits of a form, null if it has none. The error may be a problem of
// the form.
func limitsIn(form url.Values) (out gen.OptNilSendLimits, err error) {
	out.SetToNull()
	all := map[string]any{}
	for _, l := range limitFields {
		if v := strings.TrimSpace(form.Get(l.Name)); v != "" {
			all[l.Name] = json.Number(v)
		}
	}
	if len(all) == 0 {
		return out, nil
	}
	if over := form.Get("on_limit"); over == string(gen.SendLimitsOnLimitApproval) {
		all["on_limit"] = over
	}
	b, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return out, fieldProblem("limits", "Limits are whole numbers, or empty for no limit.")
	}
	return out, nil
}
