package mail

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// ListAction is what a list does with mail to or from an address.
type ListAction string

// The actions, the loosest first.
const (
	ListAllow   ListAction = "allow"
	ListApprove ListAction = "approve"
	ListBlock   ListAction = "block"
)

// strictness orders the actions. No action is as strict as ListAllow.
func (a ListAction) strictness() int {
	return max(0, slices.Index([]ListAction{ListAllow, ListApprove, ListBlock}, a))
}

// Stricter reports whether a lets less mail pass than other.
func (a ListAction) Stricter(other ListAction) bool { return a.strictness() > other.strictness() }

// ListEntry is an entry of a list.
type ListEntry struct {
	ID      string
	Pattern string // as ParseListPattern returns it
	Action  ListAction
}

// ParseListPattern returns the normal form of a pattern of a list: an address,
// "*@domain" for the addresses of a domain, or "*@*.domain" for those of its
// subdomains. It is in lower case, with the domain in ASCII.
func ParseListPattern(s string) (string, error) {
	if err := CheckLine(s); err != nil {
		return "", err
	}
	domain, wild := strings.CutPrefix(s, "*@")
	if !wild {
		if strings.Contains(s, "*") {
			return "", errors.New("may have * only as in *@example.com or *@*.example.com")
		}
		if !strings.Contains(s, "@") {
			return "", errors.New("is not an address such as ann@example.com or a pattern such as *@example.com")
		}
		return parseListAddress(s)
	}
	domain = strings.TrimSuffix(domain, ".")
	parent, below := strings.CutPrefix(domain, "*.")
	if below {
		domain = parent
	}
	if len(domain) > maxDomainText || !validDomain(domain) {
		return "", errors.New("has an invalid domain")
	}
	_, domain, _ = strings.Cut(Mailbox("a@"+domain), "@")
	if below {
		return "*@*." + domain, nil
	}
	return "*@" + domain, nil
}

func parseListAddress(s string) (string, error) {
	s = strings.TrimSuffix(s, ".")
	if err := ValidAddress(s); err != nil {
		return "", err
	}
	local := localPart(s)
	if tag := strings.IndexByte(local, '+'); tag > 0 {
		return "", fmt.Errorf("must not have the tag %q: an entry holds for all tags", local[tag:])
	}
	return Mailbox(s), nil
}

// localPart returns the folded local part of an address, without quotes.
func localPart(email string) string {
	local := email[:max(0, strings.LastIndexByte(email, '@'))]
	if len(local) >= 2 && local[0] == '"' && local[len(local)-1] == '"' {
		local = plaintext.Unquote(local)
	}
	return FoldAddress(norm.NFKC.String(local))
}

// List decides about addresses. Of the entries that match an address, those with
// the most specific pattern decide, of these the strictest. If there is an entry that
// allows, it blocks addresses that no entry matches.
type List struct {
	exact   map[string][]ListEntry
	dotless map[string][]ListEntry // addresses that are blocked or need approval
	closed  bool                   // an entry allows
}

// NewList returns the list of the entries.
func NewList(entries []ListEntry) *List {
	l := &List{exact: map[string][]ListEntry{}, dotless: map[string][]ListEntry{}}
	for _, e := range entries {
		l.exact[e.Pattern] = append(l.exact[e.Pattern], e)
		if e.Action == ListAllow {
			l.closed = true
		} else if !strings.HasPrefix(e.Pattern, "*@") {
			key := withoutDots(e.Pattern)
			l.dotless[key] = append(l.dotless[key], e)
		}
	}
	return l
}

// Of returns what the list does with an address, and the entry that decides, which is
// zero if none matches. If trusted is false, no entry allows the address.
//
// Entries that block or need approval match an address whatever dots its local part
// has, and also if the local part holds the address that a relay would send to, as in
// "user%example.com@relay.example".
func (l *List) Of(email string, trusted bool) (ListAction, ListEntry) {
	var action ListAction
	var by ListEntry
	for _, form := range listForms(email) {
		if a, e := l.decide(listLevels(form), trusted); action == "" || a.Stricter(action) {
			action, by = a, e
		}
	}
	return action, by
}

// OfPattern returns what the list does with an address that a pattern matches and no
// more specific pattern.
func (l *List) OfPattern(pattern string) ListAction {
	levels := []string{pattern}
	if rest, ok := strings.CutPrefix(pattern, "*@*."); ok {
		levels = append(levels, parentPatterns(rest)...)
	} else if rest, ok := strings.CutPrefix(pattern, "*@"); ok {
		levels = append(levels, parentPatterns(rest)...)
	} else {
		levels = listLevels(pattern)
	}
	action, _ := l.decide(levels, true)
	return action
}

func (l *List) decide(levels []string, trusted bool) (action ListAction, by ListEntry) {
	for i, level := range levels {
		found := l.exact[level]
		if i == 0 && !strings.HasPrefix(level, "*@") {
			found = append(slices.Clone(found), l.dotless[withoutDots(level)]...)
		}
		for _, e := range found {
			if (trusted || e.Action != ListAllow) && (by.ID == "" || e.Action.Stricter(by.Action)) {
				by = e
			}
		}
		if by.ID != "" {
			return by.Action, by
		}
	}
	if l.closed {
		return ListBlock, ListEntry{}
	}
	return ListAllow, ListEntry{}
}

// maxListForms bounds the addresses that an address can hold.
const maxListForms = 4

// listForms returns the mailbox of an address, and those of the addresses that its
// local part holds.
func listForms(email string) []string {
	forms := []string{Mailbox(email)}
	for local := localPart(email); len(forms) < maxListForms; {
		inner := routedTo(local)
		if inner == "" {
			break
		}
		forms = append(forms, Mailbox(inner))
		local = localPart(inner)
	}
	return forms
}

// routedTo returns the address that a relay would send to: "user%host", "host!user" or
// "user@host" as a local part. It is empty for any other local part.
func routedTo(local string) string {
	user, host := "", ""
	switch {
	case strings.Contains(local, "@"):
		at := strings.LastIndexByte(local, '@')
		user, host = local[:at], local[at+1:]
	case strings.Contains(local, "!"):
		at := strings.IndexByte(local, '!')
		user, host = local[at+1:], local[:at]
	case strings.Contains(local, "%"):
		at := strings.LastIndexByte(local, '%')
		user, host = local[:at], local[at+1:]
	}
	if user == "" || !strings.Contains(host, ".") {
		return ""
	}
	return user + "@" + host
}

// listLevels returns the patterns that match a mailbox, the most specific first.
func listLevels(mailbox string) []string {
	domain := mailbox[strings.LastIndexByte(mailbox, '@')+1:]
	return append([]string{mailbox, "*@" + domain}, parentPatterns(domain)...)
}

// parentPatterns returns the patterns for subdomains that match a domain.
func parentPatterns(domain string) (all []string) {
	if len(domain) > maxDomainText { // it is in no DNS
		return nil
	}
	for {
		_, parent, ok := strings.Cut(domain, ".")
		if !ok {
			return all
		}
		all = append(all, "*@*."+parent)
		domain = parent
	}
}

// withoutDots returns a mailbox without the dots of its local part.
func withoutDots(mailbox string) string {
	at := strings.LastIndexByte(mailbox, '@')
	if at < 0 {
		return mailbox
	}
	return strings.ReplaceAll(mailbox[:at], ".", "") + mailbox[at:]
}
