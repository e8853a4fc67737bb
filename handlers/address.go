package handlers

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/store"
)

// addressesFromAPI reads an address field in any of its shapes: a text, an object,
// or a list of both.
func addressesFromAPI(field string, r gen.Recipients) ([]mail.Address, error) {
	switch r.Type {
	case gen.AddressObjectRecipients:
		return addressList(field, []gen.Address{gen.NewAddressObjectAddress(r.AddressObject)}, false)
	case gen.AddressArrayRecipients:
		return addressList(field, r.AddressArray, true)
	default:
		return addressList(field, []gen.Address{gen.NewMailboxAddress(r.Mailbox)}, false)
	}
}

// optionalAddresses is addressesFromAPI for a field that may be absent, null or
// empty.
func optionalAddresses(field string, o interface {
	Get() (gen.OptionalRecipients, bool)
}) ([]mail.Address, error) {
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
		return addressList(field, []gen.Address{gen.NewMailboxAddress(r.Mailbox)}, false)
	}
}

func addressList(field string, in []gen.Address, indexed bool) ([]mail.Address, error) {
	out := make([]mail.Address, 0, len(in))
	for i, a := range in {
		place := field
		if indexed {
			place += "[" + strconv.Itoa(i) + "]"
		}
		addr, err := addressFromAPI(place, a)
		if err != nil {
			return nil, err
		}
		out = append(out, addr)
	}
	return out, nil
}

// addressFromAPI reads an address: "Ann <ann@example.org>", the address alone, or an
// object.
func addressFromAPI(field string, a gen.Address) (mail.Address, error) {
	written, name := string(a.Mailbox), ""
	if a.Type == gen.AddressObjectAddress {
		written, name = string(a.AddressObject.Email), a.AddressObject.Name.Or("")
		if err := checkName(field+".name", &name); err != nil {
			return mail.Address{}, err
		}
		field += ".email"
		if err := mail.ValidAddress(written); err != nil { // not with a name
			return mail.Address{}, httpapi.Invalid(field, "%s%s", err, httpapi.Quoted(written))
		}
	}
	addr, err := mail.ParseMailbox(written)
	if err != nil {
		return mail.Address{}, httpapi.Invalid(field, "%s%s", err, httpapi.Quoted(written))
	}
	if name != "" {
		addr.Name = name
	}
	if utf8.RuneCountInString(addr.Name) > maxRecipientName {
		return mail.Address{}, httpapi.Invalid(field, "has a name of more than %d characters", maxRecipientName)
	}
	return addr, nil
}

// isOwn reports whether email is the address of the inbox or one of its aliases. It
// ignores case and tags.
func isOwn(in store.Inbox, email string) bool {
	name, domain := cutTag(email)
	own, at := cutAddress(in.Address)
	return domain == at && (name == own || slices.Contains(in.Aliases.V, name))
}

// cutTag returns the folded local part of an address without its tag, and its domain.
func cutTag(email string) (name, domain string) {
	local, domain := cutAddress(mail.FoldAddress(email))
	name, _, _ = strings.Cut(local, "+")
	return name, domain
}

// cutAddress splits an address. The domain is in lower case.
func cutAddress(email string) (local, domain string) {
	at := strings.LastIndexByte(email, '@')
	if at < 0 {
		return email, ""
	}
	return email[:at], strings.ToLower(email[at+1:])
}

// others returns the addresses that are not those of the inbox itself. m is the
// message that it replies to, which was delivered to one of its addresses.
func (a *API) others(ctx context.Context, in store.Inbox, m store.Message, list []mail.Address) ([]mail.Address, error) {
	var out []mail.Address
	for _, to := range list {
		name, domain := cutTag(to.Email)
		own := isOwn(in, to.Email)
		if m.DeliveredTo != nil {
			reached, at := cutTag(*m.DeliveredTo)
			own = own || name == reached && domain == at
		}
		if !own && in.CatchAll && (domain == in.Domain || strings.HasSuffix(domain, "."+in.Domain)) {
			var err error
			if own, err = a.cfg.Incoming.Reaches(ctx, in, to.Email); err != nil {
				return nil, err
			}
		}
		if !own {
			out = append(out, to)
		}
	}
	return out, nil
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

func mailboxes(as []mail.Address) []string { return mapped(as, mailbox) }

// nullMailboxes returns nil, which is null, for an empty list.
func nullMailboxes(as []mail.Address) []string {
	if len(as) == 0 {
		return nil
	}
	return mailboxes(as)
}
