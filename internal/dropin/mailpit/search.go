package mailpit

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/httpapi"
)

// search is a search of Mailpit. All terms must match, and one of the IDs if there are any.
type search struct {
	terms []func(*gen.Message) bool
	ids   struct{ IDs []string }
	text  bool // a term reads the text of messages
}

func (s search) matches(m *gen.Message) bool {
	return (len(s.ids.IDs) == 0 || slices.Contains(s.ids.IDs, m.ID)) &&
		!slices.ContainsFunc(s.terms, func(term func(*gen.Message) bool) bool { return !term(m) })
}

// maxTerms limits the terms of a search: each is compared with every message.
const maxTerms = 50

// readSearch reads the search of a request, and its parameters with more than those of the
// search: words, phrases in quotes, filters such as from:name, and any of them after "-" or
// "!" for what must not match.
func readSearch(r *http.Request, more ...string) (q url.Values, s search, err error) {
	if q, err = vendorapi.Query(r, append(more, "query", "tz")...); err != nil {
		return q, s, err
	}
	zone, err := time.LoadLocation(q.Get("tz"))
	if err != nil {
		return q, s, httpapi.Invalid("tz", "must be a time zone such as Europe/Berlin")
	}
	all := words(q.Get("query"))
	if len(all) > maxTerms {
		return q, s, httpapi.Invalid("query", "must have at most %d terms", maxTerms)
	}
	for _, word := range all {
		bare := strings.TrimLeft(word, "-!")
		if bare == "" {
			bare = word
		}
		term, err := s.term(bare, zone)
		if err != nil {
			return q, s, err
		}
		s.terms = append(s.terms, func(m *gen.Message) bool { return term(m) == (bare == word) })
	}
	return q, s, nil
}

// words splits a query at spaces outside of quotes.
func words(query string) []string {
	quoted := false
	return strings.FieldsFunc(query, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return unicode.IsSpace(r) && !quoted
	})
}

// texts are the texts of a message in which the filters look; "" is that of words.
var texts = map[string]func(*gen.Message) []string{
	"": func(m *gen.Message) []string {
		return append(people(m.To, m.Cc, vendorapi.From(m)), m.Subject, m.Text.Or(""))
	},
	"from":     func(m *gen.Message) []string { return people(vendorapi.From(m)) },
	"to":       func(m *gen.Message) []string { return people(m.To) },
	"cc":       func(m *gen.Message) []string { return people(m.Cc) },
	"bcc":      bcc,
	"reply-to": func(m *gen.Message) []string { return people(m.ReplyTo) },
	"addressed": func(m *gen.Message) []string {
		return append(people(m.To, m.Cc, m.ReplyTo, vendorapi.From(m)), bcc(m)...)
	},
	"subject":    func(m *gen.Message) []string { return []string{m.Subject} },
	"message-id": func(m *gen.Message) []string { return []string{messageID(m)} },
}

func people(lists ...[]gen.MailAddress) []string {
	return vendorapi.Mapped(slices.Concat(lists...), func(a gen.MailAddress) string { return a.Name.Or("") + " <" + a.Email + ">" })
}

// bcc returns the address that a message reached, if its header does not have it.
func bcc(m *gen.Message) []string {
	to, ok := m.DeliveredTo.Get()
	if !ok || slices.ContainsFunc(slices.Concat(m.To, m.Cc), func(a gen.MailAddress) bool { return strings.EqualFold(a.Email, to) }) {
		return nil
	}
	return []string{to}
}

// term reads one term.
func (s *search) term(word string, zone *time.Location) (func(*gen.Message) bool, error) {
	name, value, _ := strings.Cut(word, ":")
	if name = strings.ToLower(name); value == "" || word[0] == '"' {
		name, value, s.text = "", word, true
	}
	value = strings.Trim(value, `"`)
	switch name {
	case "has":
		if inline := value == "inline"; inline || strings.HasPrefix(value, "attachment") {
			return func(m *gen.Message) bool {
				return slices.ContainsFunc(m.Attachments, func(a gen.Attachment) bool { return a.Inline == inline })
			}, nil
		}
	case "is":
		if value == "read" || value == "unread" {
			return func(m *gen.Message) bool { return isRead(m) == (value == "read") }, nil
		}
	case "tag":
		return func(m *gen.Message) bool {
			return slices.ContainsFunc(m.Labels, func(label string) bool { return strings.EqualFold(label, value) })
		}, nil
	case "before", "after":
		if at, err := time.ParseInLocation(time.DateOnly, strings.ReplaceAll(value, "/", "-"), zone); err == nil {
			return func(m *gen.Message) bool { return m.CreatedAt.Before(at) == (name == "before") }, nil
		}
	default:
		if in := texts[name]; in != nil {
			return func(m *gen.Message) bool {
				return slices.ContainsFunc(in(m), func(text string) bool { return vendorapi.Contains(text, value) })
			}, nil
		}
	}
	return nil, vendorapi.Unsupported("the search " + word)
}
