package web

import (
	"strings"

	"github.com/postroom/postroom/gen"
)

func (d *Dashboard) contactPages() { d.get("/contacts", d.listContacts) }

func (d *Dashboard) listContacts(p *page) error {
	email := strings.TrimSpace(p.r.URL.Query().Get("email"))
	l, err := d.api.ListContacts(p.ctx(), gen.ListContactsParams{Limit: limit(), Cursor: p.cursor(), Email: optional(email)})
	if pr, ok := problemOf(err); ok && pr.Of("email") != "" {
		l, err = &gen.ContactList{Cursor: gen.NilString{Null: true}}, nil // no contact matches an empty address
	}
	if err != nil {
		return err
	}
	return p.show("contacts", struct {
		Contacts []gen.Contact
		paging
		Email string
	}{l.Data, p.paging(l.Cursor), email})
}
