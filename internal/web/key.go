package web

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
)

func (d *Dashboard) keyPages() {
	d.get("/keys", pageOf("keys", d.listKeys))
	d.post("/keys", d.createKey)
	d.get("/keys/{id}/secret", d.showKey)
	d.post("/keys/{id}/revoke", d.revokeKey)
}

// keyList is the page of API keys, with the form for a new key.
type keyList struct {
	Keys []gen.ApiKey
	paging
	Scopes []scope
	// Inboxes are the newest inboxes, to choose from; MoreInboxes reports whether
	// there are others.
	Inboxes     []gen.Inbox
	MoreInboxes bool
	Form        keyForm
	Problem     problem
}

// keyForm holds the submitted values.
type keyForm struct {
	Name, Mode, AllowedIPs, ExpiresOn string
	Scopes                            []string
	Inboxes                           []string // selected
	OtherInboxes                      string   // typed ids
}

// scope is a permission of a key, with its meaning.
type scope struct{ Name, Means string }

var scopes = []scope{
	{"*", "all permissions"},
	{"read", "read inboxes, messages, emails, usage, templates and domains"},
	{"send", "create inboxes, send mail, edit drafts"},
	{"codes:read", "wait for verification codes, without the messages"},
	{"emails:send", "send emails"},
	{"emails:read", "read emails"},
	{"contacts:write", "read and change contacts"},
	{"contacts:read", "read contacts"},
	{"templates:write", "read and change templates"},
	{"templates:read", "read templates"},
	{"domains:write", "read and change domains"},
	{"domains:read", "read domains"},
	{"webhooks:manage", "manage webhooks"},
	{"keys:manage", "manage API keys"},
}

func (d *Dashboard) listKeys(p *page) (keyList, error) {
	l, err := d.api.ListApiKeys(p.ctx(), gen.ListApiKeysParams{Limit: limit(), Cursor: p.cursor()})
	if err != nil {
		return keyList{}, err
	}
	in, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: limit()})
	if err != nil {
		return keyList{}, err
	}
	return keyList{
		Keys: l.Data, paging: p.paging(l.Cursor), Scopes: scopes, Inboxes: in.Data, MoreInboxes: in.HasMore,
		Form: keyForm{Mode: string(gen.ApiKeyCreateModeLive)},
	}, nil
}

func (d *Dashboard) createKey(p *page) error {
	sent, err := p.form()
	if err != nil {
		return err
	}
	form := keyForm{
		Name: strings.TrimSpace(sent.Get("name")), Mode: sent.Get("mode"), Scopes: sent["scopes"],
		AllowedIPs: sent.Get("allowed_ips"), ExpiresOn: sent.Get("expires_at"),
		Inboxes: sent["inbox_ids"], OtherInboxes: sent.Get("other_inboxes"),
	}
	made, err := d.api.CreateApiKey(p.ctx(), form.request())
	if err != nil {
		return showFault(p, "keys", err, d.listKeys, func(v *keyList, pr problem) { v.Form, v.Problem = form, pr })
	}
	return p.leaveSecret("/keys/"+url.PathEscape(made.ID)+"/secret", made.Key)
}

// showKey shows a key that was just created.
func (d *Dashboard) showKey(p *page) error {
	value, ok, err := p.takeSecret("/keys")
	if err != nil || !ok {
		return err
	}
	return p.show("secret", secret{
		Title: "Key created", What: "API key", Value: value, Back: "/keys", BackTitle: "Back to API keys",
		Use: "Send it as “Authorization: Bearer …”. Copy it now: it is shown only once, and Postroom stores only its hash.",
	})
}

// listOf splits a field that holds several values.
func listOf(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r <= ' ' })
}

// request returns the API request. Empty fields are left out.
func (f keyForm) request() *gen.ApiKeyCreate {
	req := &gen.ApiKeyCreate{Name: f.Name, AllowedIps: listOf(f.AllowedIPs)}
	if ids := append(slices.Clone(f.Inboxes), listOf(f.OtherInboxes)...); len(ids) > 0 {
		req.InboxIds = gen.NewOptNilStringArray(ids)
	}
	if f.Mode != "" {
		req.Mode = gen.NewOptApiKeyCreateMode(gen.ApiKeyCreateMode(f.Mode))
	}
	for _, s := range f.Scopes {
		req.Scopes = append(req.Scopes, gen.ApiKeyScope(s))
	}
	// The field is a date; the key expires at the end of that day.
	if day, err := time.Parse(time.DateOnly, f.ExpiresOn); err == nil {
		req.ExpiresAt = gen.NewOptNilDateTime(day.AddDate(0, 0, 1))
	}
	return req
}

func (d *Dashboard) revokeKey(p *page) error {
	if _, err := d.api.RevokeApiKey(p.ctx(), gen.RevokeApiKeyParams{APIKeyID: p.r.PathValue("id")}); err != nil {
		return p.refused("/keys", err)
	}
	return p.done("/keys", "API key revoked.")
}
