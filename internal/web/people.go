package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/store"
)

// peopleView is the page of the users of the account.
type peopleView struct {
	list[store.User]
	Tabs []messageTab
	Tab  string
	Own  string // ID of the signed-in user
}

func (d *Dashboard) listPeople(p *page) error {
	l, err := d.store.ListUsers(p.ctx(), p.user.AccountID, p.logPage())
	if err != nil {
		return err
	}
	v := peopleView{Tab: "people", Own: p.user.ID}
	v.list = list[store.User]{l.Rows, p.pagingOf(l.Cursor), p.formOf(url.Values{"role": {string(store.RoleApprover)}})}
	if v.Tabs, err = p.settingsTabs(); err != nil {
		return err
	}
	return p.show("people", v)
}

const (
	peoplePath = "/settings/people"
	invitePath = peoplePath + "/link"
)

// invite creates a user, who sets a password with a link that is shown once.
func (d *Dashboard) invite(p *page) error {
	name, role := p.field("name"), store.Role(p.form.Get("role"))
	if !slices.Contains(store.Roles, role) {
		return errForm
	}
	if name == "" || utf8.RuneCountInString(name) > longestName || strings.ContainsFunc(name, unicode.IsControl) {
		return p.again(fieldProblem("name", "Use 1 to 100 characters."), d.listPeople)
	}
	link, token := NewLink(d.now())
	u, err := d.store.CreateUser(p.ctx(), p.user.AccountID, name, role, link)
	if errors.Is(err, store.ErrNameTaken) {
		return p.again(fieldProblem("name", "Another user has this name."), d.listPeople)
	}
	if err != nil {
		return err
	}
	d.log.InfoContext(p.ctx(), "user created", "user_id", u.ID, "role", u.Role, "by", p.user.ID)
	return p.leaveSecret(invitePath, nil, SetupURL(d.cfg.BaseURL, token))
}

// showInvite shows a one-time link that was just created.
func (d *Dashboard) showInvite(p *page) error {
	return p.showOnce(secret{
		Title: "Link to set the password", What: "Send this link to the person. It is shown once.",
		Use: "It works once, for 24 hours. Whoever opens it first sets the password.", Back: peoplePath, BackTitle: "Back to people",
	})
}

// other returns the user that a form is about. Users cannot change their own role or
// remove themselves, so that an admin remains.
func (d *Dashboard) other(p *page) (store.User, error) {
	id := p.id()
	if id == p.user.ID {
		return store.User{}, &failure{http.StatusConflict, "Not changed", "You cannot change your own role, reset or remove yourself. Ask another admin."}
	}
	return d.store.User(p.ctx(), p.user.AccountID, id)
}

func (d *Dashboard) setRole(p *page) error {
	role := store.Role(p.form.Get("role"))
	if !slices.Contains(store.Roles, role) {
		return errForm
	}
	u, err := d.other(p)
	if err != nil {
		return err
	}
	if err := d.store.SetRole(p.ctx(), p.user.AccountID, u.ID, role); err != nil {
		return err
	}
	d.log.InfoContext(p.ctx(), "role changed", "user_id", u.ID, "role", role, "by", p.user.ID)
	return p.done(peoplePath, u.Name+" is now "+map[store.Role]string{store.RoleAdmin: "an admin.", store.RoleApprover: "an approver.", store.RoleViewer: "a viewer."}[role])
}

func (d *Dashboard) resetPassword(p *page) error {
	u, err := d.other(p)
	if err != nil {
		return err
	}
	link, token := NewLink(d.now())
	if _, err := d.store.ResetUser(p.ctx(), u.Name, link); err != nil {
		return err
	}
	d.log.InfoContext(p.ctx(), "user reset", "user_id", u.ID, "by", p.user.ID)
	return p.leaveSecret(invitePath, nil, SetupURL(d.cfg.BaseURL, token))
}

func (d *Dashboard) removePerson(p *page) error {
	u, err := d.other(p)
	if err != nil {
		return err
	}
	if _, err := d.store.RemoveUser(p.ctx(), u.Name); err != nil {
		return err
	}
	d.log.InfoContext(p.ctx(), "user removed", "user_id", u.ID, "by", p.user.ID)
	return p.done(peoplePath, u.Name+" is removed and signed out.")
}
