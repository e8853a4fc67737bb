package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/store"
)

// consentView is the page on which a person decides whether an application may
// connect.
type consentView struct {
	oauth.Request
	Inboxes     []gen.Inbox
	MoreInboxes bool
	Form        keyForm
	Problem     problem
}

// consentDays are the choices for the lifetime of a connection, in days.
var consentDays = []string{"1", "7", "30", "90", "365"}

// askConsent shows the request of an application. A person has to choose more than
// the least that it can get.
func (d *Dashboard) askConsent(p *page) error {
	req, err := d.authorization(p, p.r.URL.Query())
	if err != nil {
		return err
	}
	return d.showConsent(p, http.StatusOK, consentView{Request: req, Form: keyForm{Preset: "read", Expires: "30"}})
}

// authorization returns the request of an application, or the page that says what is
// wrong with it.
func (d *Dashboard) authorization(p *page, q url.Values) (oauth.Request, error) {
	req, err := d.cfg.OAuth.Request(p.ctx(), q)
	if wrong, ok := errors.AsType[*oauth.Problem](err); ok {
		return req, &failure{http.StatusBadRequest, "This application cannot connect", wrong.Text}
	}
	return req, err
}

func (d *Dashboard) showConsent(p *page, status int, v consentView) error {
	in, err := d.api.ListInboxes(p.ctx(), gen.ListInboxesParams{Limit: limit()})
	if err != nil {
		return err
	}
	v.Inboxes, v.MoreInboxes = in.Data, in.HasMore
	p.w.Header().Set("Content-Security-Policy", strings.Replace(policy, "form-action 'self'", "form-action 'self' "+v.FormAction(), 1))
	return p.showStatus(status, "consent", v)
}

// consent acts on the decision. The form has the parameters of the request, which are
// checked again.
func (d *Dashboard) consent(p *page) error {
	req, err := d.authorization(p, p.form)
	if err != nil {
		return err
	}
	if p.form.Get("decision") != "approve" {
		return p.goTo(d.cfg.OAuth.Deny(req))
	}
	form := keyForm{
		Preset: p.form.Get("preset"), Expires: p.form.Get("expires"), Inboxes: p.form["inbox_ids"],
		OtherInboxes: p.form.Get("other_inboxes"), AllInboxes: p.form.Get("inboxes") == "all",
	}
	rights, err := d.consentRights(p, req, form)
	if err != nil {
		return again(err, func(pr problem) error {
			return d.showConsent(p, pr.status, consentView{Request: req, Form: form, Problem: pr})
		})
	}
	to, err := d.cfg.OAuth.Approve(p.ctx(), req, p.user.AccountID, rights)
	if err != nil {
		return err
	}
	d.log.InfoContext(p.ctx(), "application approved", "user_id", p.user.ID, "client_id", req.Client.ID, "client", p.client())
	return p.goTo(to)
}

// consentRights returns what the person chose, or the problem of a field.
func (d *Dashboard) consentRights(p *page, req oauth.Request, form keyForm) (store.Rights, error) {
	rights := store.Rights{Name: req.Client.Name, Scopes: []string{"read"}}
	if form.Preset == "agent" && req.AsksSend {
		rights.Scopes = []string{"read", "send"}
	}
	if !form.AllInboxes {
		ids, err := d.inboxIDs(p, form)
		if err != nil {
			return rights, err
		}
		for _, id := range ids {
			if _, err := d.store.Inbox(p.ctx(), p.user.AccountID, id); errors.Is(err, store.ErrNotFound) {
				return rights, noInbox("inbox_ids", id)
			} else if err != nil {
				return rights, err
			}
		}
		if len(ids) == 0 {
			return rights, fieldProblem("inbox_ids", "Select at least one inbox, or all inboxes.")
		}
		rights.InboxIDs = ids
	}
	if form.Expires != "" && !slices.Contains(consentDays, form.Expires) {
		return rights, fieldProblem("expires", "Select when the connection expires.")
	}
	if at, ok := form.expiry(d.now()); ok {
		rights.ExpiresAt = &at
	}
	return rights, nil
}
