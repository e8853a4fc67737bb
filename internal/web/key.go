package web

import (
	"encoding/json"
	"errors"
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
	Applications []store.Application
	Keys         []gen.ApiKey
	paging
}

func (d *Dashboard) listKeys(p *page) (keyList, error) {
	l, err := d.api.ListApiKeys(p.ctx(), gen.ListApiKeysParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return keyList{}, err
	}
	v := keyList{Keys: l.Data, paging: p.paging(l.Cursor)}
	apps, err := d.store.Applications(p.ctx(), p.user.AccountID)
	if err != nil {
		return v, err
	}
	v.Keys = slices.DeleteFunc(v.Keys, func(k gen.ApiKey) bool {
		return slices.ContainsFunc(apps, func(a store.Application) bool { return a.ID == k.ID })
	})
	if v.First == "" {
		v.Applications = apps
	}
	return v, nil
}

// keyView is the page with the form for a new key.
type keyView struct {
	Presets []preset
	Scopes  []scope
	// Inboxes are the newest inboxes, to choose from; MoreInboxes reports whether
	// there are others.
	Inboxes     []gen.Inbox
	MoreInboxes bool
	Form        keyForm
	Problem     problem
}

// keyForm holds the submitted values.
type keyForm struct {
	Name, Preset, AllowedIPs string
	Test                     bool
	Expires, ExpiresOn       string // number of days, "date" or empty for never; and the date
	Scopes                   []string
	Inboxes                  []string // selected
	OtherInboxes             string   // typed addresses and IDs
	AllInboxes               bool     // on the consent page
	Limits                   limitsForm
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

// scope is a permission of a key, with its meaning.
type scope struct{ Name, Means string }

var scopes = []scope{
	{"codes:read", "wait for verification codes, without the messages"},
	{"read", "read inboxes, messages, emails, usage, templates and domains"},
	{"send", "create inboxes, send mail, edit drafts"},
	{"emails:send", "send emails"},
	{"emails:read", "read emails"},
	{"contacts:write", "read and change contacts"},
	{"contacts:read", "read contacts"},
	{"templates:write", "read and change templates"},
	{"templates:read", "read templates"},
	{"domains:write", "read and change domains"},
	{"domains:read", "read domains"},
	{"webhooks:manage", "manage webhooks; those for messages, drafts and emails need reading too"},
	{"keys:manage", "manage API keys"},
	{"*", "all permissions"},
}

func (d *Dashboard) newKey(p *page) (keyView, error) {
	in, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: limit()})
	if err != nil {
		return keyView{}, err
	}
	v := keyView{Presets: presets, Scopes: scopes, Inboxes: in.Data, MoreInboxes: in.HasMore, Form: keyForm{Preset: presets[0].Name}}
	if id := p.r.URL.Query().Get("inbox"); id != "" {
		v.Form.Inboxes = []string{id}
	}
	return v, nil
}

func (d *Dashboard) createKey(p *page) error {
	form := keyForm{
		Name: p.field("name"), Preset: p.form.Get("preset"), Test: p.form.Get("test") != "", Scopes: p.form["scopes"],
		AllowedIPs: p.form.Get("allowed_ips"), Expires: p.form.Get("expires"), ExpiresOn: p.form.Get("expires_at"),
		Inboxes: p.form["inbox_ids"], OtherInboxes: p.form.Get("other_inboxes"), Limits: limitsFrom(p.form),
	}
	req, err := d.keyRequest(p, form)
	var made *gen.ApiKeyCreated
	if err == nil {
		made, err = d.api.CreateApiKey(p.ctx(), req)
	}
	if err != nil {
		return showFault(p, "key-new", err, d.newKey, func(v *keyView, pr problem) { v.Form, v.Problem = form, pr })
	}
	if p.form.Get("start") == "1" {
		return p.leaveSecret("/", nil, made.Key)
	}
	q := url.Values{"preset": {form.Preset}}
	if len(made.InboxIds) > 0 {
		q.Set("inbox", made.InboxIds[0])
	}
	return p.leaveSecret("/keys/"+url.PathEscape(made.ID)+"/secret", q, made.Key)
}

// keyRequest returns the API request, without the empty fields. The error may be the
// problem of a field that the API does not know.
func (d *Dashboard) keyRequest(p *page, f keyForm) (*gen.ApiKeyCreate, error) {
	req := &gen.ApiKeyCreate{Name: f.Name, AllowedIps: listOf(f.AllowedIPs), Mode: gen.NewOptApiKeyCreateMode(gen.ApiKeyCreateModeRestricted)}
	if i := slices.IndexFunc(presets, func(c preset) bool { return c.Name == f.Preset }); i >= 0 {
		req.Scopes = presets[i].scopes
	}
	if f.Preset == custom {
		for _, s := range f.Scopes {
			req.Scopes = append(req.Scopes, gen.ApiKeyScope(s))
		}
		if len(req.Scopes) == 0 {
			return nil, fieldProblem("scopes", "Select at least one permission.")
		}
	}
	switch {
	case f.Test:
		req.Mode = gen.NewOptApiKeyCreateMode(gen.ApiKeyCreateModeTest)
	case f.Preset == "full":
		req.Mode = gen.NewOptApiKeyCreateMode(gen.ApiKeyCreateModeLive)
	}
	ids, err := d.inboxIDs(p, f)
	if err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		req.InboxIds = gen.NewOptNilStringArray(ids)
	}
	if at, ok := f.expiry(d.now()); ok {
		req.ExpiresAt = gen.NewOptNilDateTime(at)
	}
	req.Limits, err = f.Limits.request()
	return req, err
}

// inboxIDs returns the IDs of the selected and the typed inboxes. The error may be the
// problem of an address that is not an inbox of the account.
func (d *Dashboard) inboxIDs(p *page, f keyForm) ([]string, error) {
	ids := slices.Clone(f.Inboxes)
	for _, name := range listOf(f.OtherInboxes) {
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

// expiry returns when the key expires; ok is false for never. A date means the end
// of that day.
func (f keyForm) expiry(now time.Time) (at time.Time, ok bool) {
	if days, err := strconv.Atoi(f.Expires); err == nil && days > 0 && days <= 3650 {
		return now.AddDate(0, 0, days), true
	}
	if day, err := time.Parse(time.DateOnly, f.ExpiresOn); err == nil && f.Expires == "date" {
		return day.AddDate(0, 0, 1), true
	}
	return time.Time{}, false
}

// keySecret is the page that shows a new key once, with examples that use it.
type keySecret struct {
	Value    string
	Snippets []snippet
}

// showSecret shows a key that was just created.
func (d *Dashboard) showSecret(p *page) error {
	value, ok, err := p.takeSecret("/keys")
	if err != nil || !ok {
		return err
	}
	v := keySecret{Value: value}
	if v.Snippets, err = d.keySnippets(p); err != nil {
		return err
	}
	for i := range v.Snippets {
		code := v.Snippets[i].Code
		if _, wait, ok := strings.Cut(code, waitExample); ok && slices.Contains([]string{"read", custom}, p.r.URL.Query().Get("preset")) {
			code = waitExample + wait // the key may not be able to simulate a message
		}
		v.Snippets[i].Code = code
	}
	v.Snippets = withKey(v.Snippets, value)
	return p.show("key-secret", v)
}

// keySnippets returns the examples for a new key: they use its first inbox, or the
// newest one of the account.
func (d *Dashboard) keySnippets(p *page) ([]snippet, error) {
	q := p.r.URL.Query()
	if q.Get("preset") == "send" {
		domains, err := d.ownDomains(p)
		if err != nil {
			return nil, err
		}
		return d.sendSnippets(append(domains, "example.com")[0]), nil
	}
	if id := q.Get("inbox"); id != "" {
		in, err := d.api.GetInbox(p.ctx(), gen.GetInboxParams{InboxID: id})
		if isMissing(err) {
			return d.snippets(nil), nil
		}
		return d.snippets(in), err
	}
	l, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: gen.NewOptInt(1)})
	if err != nil {
		return nil, err
	}
	if len(l.Data) == 0 {
		return d.snippets(nil), nil
	}
	return d.snippets(&l.Data[0]), nil
}

// keyPage is the page of one key.
type keyPage struct {
	store.Key
	Inboxes []string // addresses, or IDs of deleted inboxes; nil: all
	LastIP  string   // client address of the last recorded request, or empty
	Limits  limitsForm
	Problem problem
}

func (d *Dashboard) showKey(p *page) (keyPage, error) {
	k, err := d.store.Key(p.ctx(), p.user.AccountID, p.r.PathValue("id"))
	if err != nil {
		return keyPage{}, err
	}
	v := keyPage{Key: k}
	last, err := d.store.APIRequests(p.ctx(), p.user.AccountID, store.APIRequestFilter{Caller: k.ID}, store.Page{Limit: 1})
	if err != nil {
		return keyPage{}, err
	}
	if len(last.Rows) > 0 {
		v.LastIP = last.Rows[0].IP
	}
	if v.Limits, err = limitsOf(k.Bounds()); err != nil || k.InboxIDs == nil {
		return v, err
	}
	for _, id := range k.InboxIDs.V {
		in, err := d.store.Inbox(p.ctx(), p.user.AccountID, id)
		switch {
		case err == nil:
			v.Inboxes = append(v.Inboxes, in.Address)
		case errors.Is(err, store.ErrNotFound):
			v.Inboxes = append(v.Inboxes, id)
		default:
			return keyPage{}, err
		}
	}
	return v, nil
}

// limitKey replaces the limits of a key.
func (d *Dashboard) limitKey(p *page) error {
	form := limitsFrom(p.form)
	id := p.r.PathValue("id")
	limits, err := form.request()
	if err == nil {
		_, err = d.api.UpdateApiKey(p.ctx(), &gen.ApiKeyUpdate{Limits: limits}, gen.UpdateApiKeyParams{APIKeyID: id})
	}
	if err != nil {
		return showFault(p, "key", err, d.showKey, func(v *keyPage, pr problem) { v.Limits, v.Problem = form, pr })
	}
	return p.done("/keys/"+url.PathEscape(id), "Limits saved.")
}

func (d *Dashboard) revokeKey(p *page) error {
	text := "API key revoked."
	if p.form.Has("application") {
		text = "Application disconnected."
	}
	_, err := d.api.RevokeApiKey(p.ctx(), gen.RevokeApiKeyParams{APIKeyID: p.r.PathValue("id")})
	return p.result(err, "/keys", "/keys", text)
}

// listOf splits a field that holds several values.
func listOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r <= ' ' })
}

// limitsForm holds the limits of a key or an inbox, as a form shows them.
type limitsForm struct {
	Values  map[string]string
	OnLimit string
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

// limitsFrom returns the submitted limits.
func limitsFrom(sent url.Values) limitsForm {
	f := limitsForm{Values: map[string]string{}, OnLimit: sent.Get("on_limit")}
	for _, l := range limitFields {
		if v := strings.TrimSpace(sent.Get(l.Name)); v != "" {
			f.Values[l.Name] = v
		}
	}
	return f
}

// limitsOf returns limits of the API or the store for a form. Both have the same
// JSON.
func limitsOf(limits any) (limitsForm, error) {
	f := limitsForm{Values: map[string]string{}}
	b, err := json.Marshal(limits)
	if err != nil {
		return f, err
	}
	var all map[string]any
	if err := json.Unmarshal(b, &all); err != nil {
		return f, err
	}
	for name, v := range all {
		switch v := v.(type) {
		case float64:
			f.Values[name] = strconv.FormatFloat(v, 'f', -1, 64)
		case string:
			f.OnLimit = v
		}
	}
	return f, nil
}

// request returns the limits for the API, null if the form has none. The error may be a
// problem of the form.
func (f limitsForm) request() (out gen.OptNilSendLimits, err error) {
	out.SetToNull()
	if len(f.Values) == 0 {
		return out, nil
	}
	all := map[string]any{}
	for name, v := range f.Values {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < 0 {
			return out, fieldProblem("limits", "Limits are whole numbers, or empty for no limit.")
		}
		all[name] = n
	}
	if f.OnLimit == string(gen.SendLimitsOnLimitApproval) {
		all["on_limit"] = f.OnLimit
	}
	b, err := json.Marshal(all)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil {
		return out, fieldProblem("limits", "A limit is too large.")
	}
	return out, nil
}

// Set returns the limits that are set, in words.
func (f limitsForm) Set() []string {
	var all []string
	for _, l := range limitFields {
		if v := f.Values[l.Name]; v != "" {
			all = append(all, strings.ToLower(l.Label)+": "+v)
		}
	}
	return all
}
