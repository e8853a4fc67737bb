package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/store"
)

// consentView is the page on which a person decides whether an application may
// connect.
type consentView struct {
	oauth.Request
	inboxPicker
	Form form
}

// consentDays are the choices for the lifetime of a connection, in days.
var consentDays = []string{"1", "7", "30", "90", "365"}

// askConsent shows the request of an application. A person has to choose more than
// the least that it can get.
func (d *Dashboard) askConsent(p *page) error {
	asked := p.r.URL.Query()
	if p.form != nil {
		asked = p.form
	}
	req, err := d.authorization(p, asked)
	if err != nil {
		return err
	}
	in, err := d.inboxPicker(p)
	if err != nil {
		return err
	}
	p.w.Header().Set("Content-Security-Policy", strings.Replace(policy, "form-action 'self'", "form-action 'self' "+req.FormAction(), 1))
	return p.show("consent", consentView{req, in, p.formOf(url.Values{"preset": {"read"}, "expires": {"30"}})})
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
	rights, err := d.consentRights(p, req)
	if err != nil {
		return p.again(err, d.askConsent)
	}
	to, err := d.cfg.OAuth.Approve(p.ctx(), req, p.user.AccountID, rights)
	if err != nil {
		return err
	}
	d.log.InfoContext(p.ctx(), "application approved", "user_id", p.user.ID, "client_id", req.Client.ID, "client", p.client())
	return p.goTo(to)
}

// consentRights returns what the person chose, or the problem of a field.
func (d *Dashboard) consentRights(p *page, req oauth.Request) (store.Rights, error) {
	rights := store.Rights{Name: req.Client.Name, Scopes: []string{"read"}}
	if p.form.Get("preset") == "agent" && req.AsksSend {
		rights.Scopes = []string{"read", "send"}
	}
	if p.form.Get("inboxes") != "all" {
		ids, err := d.chosenInboxes(p)
		if err != nil {
			return rights, err
		}
		for _, id := range ids {
			if _, err := d.store.Inbox(p.ctx(), p.user.AccountID, id); errors.Is(err, store.ErrNotFound) {
				return rights, fieldProblem("inbox_ids", "No inbox "+id+" in this account.")
			} else if err != nil {
				return rights, err
			}
		}
		if len(ids) == 0 {
			return rights, fieldProblem("inbox_ids", "Select at least one inbox, or all inboxes.")
		}
		rights.InboxIDs = ids
	}
	if after := p.form.Get("expires"); after != "" && !slices.Contains(consentDays, after) {
		return rights, fieldProblem("expires", "Select when the connection expires.")
	}
	if at, ok := p.expiry(); ok {
		rights.ExpiresAt = &at
	}
	return rights, nil
}
