package web

import (
	"encoding/json"
	"maps"
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
	return p.show("contacts", struct {
		Contacts []gen.Contact
		paging
		Email string
	}{l.Data, p.paging(l.Cursor), email})
}

// contactForm is the page of one contact. Contact is nil for a new one. Tags has a line
// for each tag, and Metadata is JSON.
type contactForm struct {
	Contact                                  *gen.Contact
	Email, First, Last, Tags, Metadata, Once string
	Problem                                  problem
}

func (d *Dashboard) newContact(p *page) error {
	return p.show("contact", contactForm{Email: strings.TrimSpace(p.r.URL.Query().Get("email")), Once: d.newOnce()})
}

func (d *Dashboard) showContact(p *page) error {
	c, err := d.api.GetContact(p.ctx(), gen.GetContactParams{ID: p.r.PathValue("id")})
	if err != nil {
		return err
	}
	f := contactForm{Contact: c, Email: c.Email, First: c.FirstName.Value, Last: c.LastName.Value}
	for _, name := range slices.Sorted(maps.Keys(c.Tags)) {
		f.Tags += name + ": " + tagText(c.Tags[name]) + "\n"
	}
	if len(c.Metadata) > 0 {
		text, err := json.MarshalIndent(rawMembers(c.Metadata), "", "  ")
		if err != nil {
			return err
		}
		f.Metadata = string(text)
	}
	return p.show("contact", f)
}

// rawMembers lets encoding/json write the members of an object unchanged.
func rawMembers(o gen.FreeObject) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(o))
	for name, value := range o {
		out[name] = json.RawMessage(value)
	}
	return out
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

// contactForm reads the form of a contact. Its Problem is what cannot be read.
func (p *page) contactForm() (f contactForm, tags gen.Tags, metadata gen.FreeObject) {
	f = contactForm{
		Email: p.field("email"), First: p.field("first_name"), Last: p.field("last_name"),
		Tags: unixLines(p.form.Get("tags")), Metadata: unixLines(p.form.Get("metadata")), Once: p.form.Get("once"),
	}
	tags, metadata = gen.Tags{}, gen.FreeObject{}
	for line := range strings.Lines(f.Tags) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			name, value, ok = strings.Cut(line, ":")
		}
		if !ok {
			f.Problem = fieldProblem("tags", "Write each tag on its own line, as name: value.")
		}
		tags[strings.TrimSpace(name)] = tagValue(strings.TrimSpace(value))
	}
	members := map[string]json.RawMessage{}
	if strings.TrimSpace(f.Metadata) != "" && json.Unmarshal([]byte(f.Metadata), &members) != nil {
		f.Problem = fieldProblem("metadata", `Write a JSON object, as {"plan": "pro"}.`)
	}
	for name, value := range members {
		metadata[name] = jx.Raw(value)
	}
	return f, tags, metadata
}

func (d *Dashboard) createContact(p *page) error {
	f, tags, metadata := p.contactForm()
	if f.Problem.Message != "" {
		return d.contactFault(p, f, f.Problem)
	}
	c, err := d.api.CreateContact(p.ctx(), &gen.ContactCreate{
		Email: gen.EmailAddress(f.Email), FirstName: nameOf(f.First), LastName: nameOf(f.Last),
		Tags: gen.NewOptTags(tags), Metadata: gen.NewOptFreeObject(metadata),
	}, gen.CreateContactParams{IdempotencyKey: optional(f.Once)})
	if err != nil {
		return d.contactFault(p, f, err)
	}
	return p.done("/contacts", c.Email+" added.")
}

func (d *Dashboard) saveContact(p *page) error {
	f, tags, metadata := p.contactForm()
	id := p.r.PathValue("id")
	var err error
	if f.Contact, err = d.api.GetContact(p.ctx(), gen.GetContactParams{ID: id}); err != nil {
		return err
	}
	if f.Problem.Message != "" {
		return d.contactFault(p, f, f.Problem)
	}
	_, err = d.api.UpdateContact(p.ctx(), &gen.ContactUpdate{
		Email: gen.NewOptEmailAddress(gen.EmailAddress(f.Email)), FirstName: nameOf(f.First), LastName: nameOf(f.Last),
		Tags: gen.NewOptTags(tags), Metadata: gen.NewOptFreeObject(metadata),
	}, gen.UpdateContactParams{ID: id})
	if err != nil {
		return d.contactFault(p, f, err)
	}
	return p.done("/contacts/"+id, "Contact saved.")
}

// contactFault shows the form of a contact again, with the problem.
func (d *Dashboard) contactFault(p *page, f contactForm, err error) error {
	return again(err, func(pr problem) error {
		if pr.code == gen.ErrorCodeContactExists {
			pr.fields = map[string]string{"email": pr.Message}
		}
		f.Problem, f.Once = pr, d.onceAfter(pr, f.Once)
		return p.showStatus(pr.status, "contact", f)
	})
}

// nameOf returns a name, or null if it is empty.
func nameOf(s string) gen.OptNilString {
	if s == "" {
		return gen.OptNilString{Set: true, Null: true}
	}
	return gen.NewOptNilString(s)
}

func (d *Dashboard) deleteContact(p *page) error {
	_, err := d.api.DeleteContact(p.ctx(), gen.DeleteContactParams{ID: p.r.PathValue("id")})
	return p.result(err, "/contacts", "/contacts", "Contact deleted.")
}
