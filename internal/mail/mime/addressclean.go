package mime

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// address returns the mailbox of an item, or false if it is not a mailbox.
func (it *addressItem) address() (mail.Address, bool) {
	name, email := it.phrase.String(), it.route
	switch {
	case !it.angle:
		name, email = cmp.Or(it.name, it.comment), name[min(it.group, len(name)):]
	case it.name != "" && strings.Trim(name, "<> ") == "": // brackets that are doubled
		name = it.name
	}
	a := mail.Address{Name: cleanName(name), Email: cleanEmail(email)}
	if a.Name == "" && it.angle {
		a.Name = cleanName(it.comment)
	}
	if a.Email == "" || len(a.Email) > MaxAddressBytes {
		return mail.Address{}, false
	}
	if !it.angle && strings.IndexByte(a.Email, '@') < 0 {
		return mail.Address{}, false
	}
	return a, true
}

// surname returns the text of an item without an address, which may be the first
// half of a name, or "".
func (it *addressItem) surname() string {
	if name := it.phrase.String(); !it.angle && it.name == "" && it.group == 0 && len(name) <= maxName {
		return cleanName(name)
	}
	return ""
}

// maxName is the maximum length of a display name in bytes.
const maxName = 1 << 10

// cleanName decodes and cleans a display name.
func cleanName(s string) string {
	s = strings.TrimSpace(s)
	if strings.IndexByte(s, '"') >= 0 {
		s = plaintext.Unquote(s)
	}
	return strings.TrimSpace(plaintext.Truncate(plaintext.FoldSpace(plaintext.OneLine(plaintext.Visible(decodeWords(s)))), maxName))
}

// withoutComments returns s without text in parentheses, or s itself if a
// parenthesis is not closed.
func withoutComments(s string) string {
	out, depth := make([]byte, 0, len(s)), 0
	for _, c := range []byte(s) {
		switch {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case depth == 0:
			out = append(out, c)
		}
	}
	if depth > 0 {
		return s
	}
	return string(out)
}

// cleanEmail returns an address without spaces, comments and source route, its
// domain in lower case.
func cleanEmail(s string) string {
	s = strings.TrimSpace(s)
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		s = guessUTF8([]byte(s))
	}
	if strings.HasPrefix(s, "@") { // a source route, RFC 5321 appendix C
		if colon := strings.IndexByte(s, ':'); colon >= 0 {
			s = s[colon+1:]
		}
	}
	s = strings.TrimPrefix(strings.TrimSpace(s), "mailto:")
	if strings.IndexByte(s, '"') < 0 {
		if strings.IndexByte(s, '(') >= 0 {
			s = withoutComments(s)
		}
		s = strings.Map(func(r rune) rune {
			if r == ' ' || plaintext.BreaksLine(r) {
				return -1
			}
			return r
		}, s)
	}
	s = strings.Trim(plaintext.OneLine(s), "<>")
	if len(s) > 2 && s[0] == '\'' && s[len(s)-1] == '\'' { // some clients quote it like this
		s = s[1 : len(s)-1]
	}
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return s
	}
	return s[:at] + strings.ToLower(s[at:])
}
