package handlers

import (
	"fmt"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
)

// mailboxesFromAPI reads an address field of an email in any of its shapes: an
// address with or without a name, or a list.
func mailboxesFromAPI(field string, m gen.Mailboxes) ([]mail.Address, error) {
	if m.Type == gen.MailboxArrayMailboxes {
		return mailboxList(field, m.MailboxArray, true)
	}
	return mailboxList(field, []gen.Mailbox{m.Mailbox}, false)
}

// optionalMailboxes is mailboxesFromAPI for a field that may be absent, null or empty.
func optionalMailboxes(field string, o gen.OptNilOptionalMailboxes) ([]mail.Address, error) {
	m, ok := o.Get()
	if !ok {
		return nil, nil
	}
	if m.Type == gen.OptionalMailboxArrayOptionalMailboxes {
		return mailboxList(field, m.OptionalMailboxArray, true)
	}
	return mailboxList(field, []gen.Mailbox{m.Mailbox}, false)
}

func mailboxList(field string, in []gen.Mailbox, indexed bool) ([]mail.Address, error) {
	out := make([]mail.Address, 0, len(in))
	for i, m := range in {
		place := field
		if indexed {
			place = fmt.Sprintf("%s[%d]", field, i)
		}
		addr, err := mail.ParseMailbox(string(m))
		if err != nil {
			return nil, httpapi.Invalid(place, "%s", err)
		}
		out = append(out, addr)
	}
	return out, nil
}

// mailbox formats an address with its name, quoted where necessary, in the form
// that requests accept.
func mailbox(a mail.Address) string {
	switch {
	case a.Name == "":
		return a.Email
	case strings.ContainsAny(a.Name, `<>"\`):
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(a.Name) + `" <` + a.Email + ">"
	}
	return a.Name + " <" + a.Email + ">"
}

func mailboxes(as []mail.Address) []string {
	out := make([]string, 0, len(as))
	for _, a := range as {
		out = append(out, mailbox(a))
	}
	return out
}

// nullMailboxes returns nil, which is null, for an empty list.
func nullMailboxes(as []mail.Address) []string {
	if len(as) == 0 {
		return nil
	}
	return mailboxes(as)
}
