package web

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/gen"
)

func (d *Dashboard) listContacts(p *page) error {
	email := strings.TrimSpace(p.r.URL.Query().Get("email"))
	l, err := d.api.ListContacts(p.ctx(), gen.ListContactsParams{Limit: limit(), Cursor: p.cursor(), Email: optional(email)})
	if pr, ok := problemOf(err); ok && pr.Of("email") != "" {
		l, err = &gen.ContactList{Cursor: gen.NilString{Null: true}}, nil // no contact matches an empty address
	}
	if err != nil {
		return err
	}
	return p.show("contacts", list[gen.Contact]{l.Data, p.paging(l.Cursor), form{Values: url.Values{"email": {email}}}})
}

// contactView is the page of a contact. Contact is nil for a new one. The field "tags" of
// the form has a line for each tag, and "metadata" is JSON.
type contactView struct {
	Contact *gen.Contact
	Form    form
}

func (d *Dashboard) newContact(p *page) error {
	return p.show("contact", contactView{nil, p.newForm(url.Values{"email": {p.r.URL.Query().Get("email")}})})
}

func (d *Dashboard) showContact(p *page) error {
	c, err := d.api.GetContact(p.ctx(), gen.GetContactParams{ID: p.id()})
	if err != nil {
		return err
	}
	tags, metadata := "", ""
	for _, name := range slices.Sorted(maps.Keys(c.Tags)) {
		tags += name + ": " + tagText(c.Tags[name]) + "\n"
	}
	if len(c.Metadata) > 0 {
		text, err := json.MarshalIndent(c.Metadata, "", "  ")
		if err != nil {
			return err
		}
		metadata = string(text)
	}
	return p.show("contact", contactView{c, p.formOf(url.Values{
		"email": {c.Email}, "first_name": {c.FirstName.Value}, "last_name": {c.LastName.Value}, "tags": {tags}, "metadata": {metadata},
	})})
}

// tagText returns the value of a tag as a form shows it: a string without its quotes,
// unless it could be read as another type.
func tagText(value jx.Raw) string {
	if text := label(value); string(tagValue(text)) == string(value) {
		return text
	}
	return string(value)
}

// tagValue returns the value of a tag that a form has: a number, true, false, a string
// in quotes, or else the text itself.
func tagValue(text string) jx.Raw {
	var v any
	if json.Unmarshal([]byte(text), &v) == nil {
		switch v.(type) {
		case float64, bool, string:
			return jx.Raw(text)
		}
	}
	quoted, _ := json.Marshal(text) // a string has no error
	return jx.Raw(quoted)
}

// contactRequest returns the contact of a form. The error may be the problem of a field.
func (p *page) contactRequest() (*gen.ContactCreate, error) {
	tags, metadata := gen.Tags{}, gen.FreeObject{}
	for line := range strings.Lines(p.form.Get("tags")) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			name, value, ok = strings.Cut(line, ":")
		}
		if !ok {
			return nil, fieldProblem("tags", "Write each tag on its own line, as name: value.")
		}
		tags[strings.TrimSpace(name)] = tagValue(strings.TrimSpace(value))
	}
	if text := p.field("metadata"); text != "" && json.Unmarshal([]byte(text), &metadata) != nil {
		return nil, fieldProblem("metadata", `Write a JSON object, as {"plan": "pro"}.`)
	}
	return &gen.ContactCreate{
		Email: gen.EmailAddress(p.field("email")), FirstName: nameOf(p.field("first_name")), LastName: nameOf(p.field("last_name")),
		Tags: gen.NewOptTags(tags), Metadata: gen.NewOptFreeObject(metadata),
	}, nil
}

func (d *Dashboard) createContact(p *page) error {
	req, err := p.contactRequest()
	if err == nil {
		_, err = d.api.CreateContact(p.ctx(), req, gen.CreateContactParams{IdempotencyKey: p.once()})
	}
	if err != nil {
		return p.again(err, d.newContact)
	}
	return p.done("/contacts", string(req.Email)+" added.")
}

func (d *Dashboard) saveContact(p *page) error {
	req, err := p.contactRequest()
	if err == nil {
		_, err = d.api.UpdateContact(p.ctx(), &gen.ContactUpdate{
			Email: gen.NewOptEmailAddress(req.Email), FirstName: req.FirstName, LastName: req.LastName, Tags: req.Tags, Metadata: req.Metadata,
		}, gen.UpdateContactParams{ID: p.id()})
	}
	if err != nil {
		return p.again(err, d.showContact)
	}
	return p.done("/contacts/"+p.id(), "Contact saved.")
}

// nameOf returns a name, or null if it is empty.
func nameOf(s string) gen.OptNilString {
	if s == "" {
		return gen.OptNilString{Set: true, Null: true}
	}
	return gen.NewOptNilString(s)
}

func (d *Dashboard) deleteContact(p *page) error {
	_, err := d.api.DeleteContact(p.ctx(), gen.DeleteContactParams{ID: p.id()})
	return p.result(err, "/contacts", "/contacts", "Contact deleted.")
}
