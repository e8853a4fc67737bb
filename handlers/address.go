package handlers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// addressesFromAPI reads an address field in any of its shapes: an address, an
// object, or a list of both.
func addressesFromAPI(field string, r gen.Recipients) ([]mail.Address, error) {
	switch r.Type {
	case gen.AddressObjectRecipients:
		return addressList(field, []gen.Address{gen.NewAddressObjectAddress(r.AddressObject)}, false)
	case gen.AddressArrayRecipients:
		return addressList(field, r.AddressArray, true)
	default:
		return addressList(field, []gen.Address{gen.NewEmailAddressAddress(r.EmailAddress)}, false)
	}
}

// optionalAddresses is addressesFromAPI for a field that may be absent or empty.
func optionalAddresses(field string, o gen.OptOptionalRecipients) ([]mail.Address, error) {
	r, ok := o.Get()
	if !ok {
		return nil, nil
	}
	switch r.Type {
	case gen.AddressObjectOptionalRecipients:
		return addressList(field, []gen.Address{gen.NewAddressObjectAddress(r.AddressObject)}, false)
	case gen.OptionalAddressArrayOptionalRecipients:
		return addressList(field, r.OptionalAddressArray, true)
	default:
		return addressList(field, []gen.Address{gen.NewEmailAddressAddress(r.EmailAddress)}, false)
	}
}

func addressList(field string, in []gen.Address, indexed bool) ([]mail.Address, error) {
	out := make([]mail.Address, 0, len(in))
	for i, a := range in {
		place := field
		if indexed {
			place += "[" + strconv.Itoa(i) + "]"
		}
		addr := mail.Address{Email: string(a.EmailAddress)}
		if a.Type == gen.AddressObjectAddress {
			addr = mail.Address{Email: string(a.AddressObject.Email), Name: a.AddressObject.Name.Or("")}
			if err := checkName(place+".name", &addr.Name); err != nil {
				return nil, err
			}
			place += ".email"
		}
		if err := mail.ValidAddress(addr.Email); err != nil {
			return nil, httpapi.Invalid(place, "%s", err)
		}
		out = append(out, addr)
	}
	return out, nil
}

// isOwn reports whether mail to email reaches the inbox. It ignores case and
// tags.
func isOwn(in store.Inbox, email string) bool {
	local, domain, _ := strings.Cut(strings.ToLower(email), "@")
	name, _, _ := strings.Cut(local, "+")
	return name+"@"+domain == in.Address
}

// others returns the addresses that do not belong to the inbox itself.
func others(in store.Inbox, list []mail.Address) []mail.Address {
	return slices.DeleteFunc(slices.Clone(list), func(a mail.Address) bool { return isOwn(in, a.Email) })
}

// without returns the addresses that are in none of the other lists, without
// duplicates.
func without(in []mail.Address, others ...[]mail.Address) []mail.Address {
	seen := map[string]bool{}
	for _, list := range others {
		for _, a := range list {
			seen[strings.ToLower(a.Email)] = true
		}
	}
	var out []mail.Address
	for _, a := range in {
		if k := strings.ToLower(a.Email); !seen[k] {
			seen[k] = true
			out = append(out, a)
		}
	}
	return out
}

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
