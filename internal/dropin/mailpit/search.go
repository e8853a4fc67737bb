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

// search is a search of Mailpit. All terms must match.
type search struct {
	terms []func(*gen.Message) bool
	text  bool // a term reads the text of messages
}

func (s search) matches(m *gen.Message) bool {
	return !slices.ContainsFunc(s.terms, func(term func(*gen.Message) bool) bool { return !term(m) })
}

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
	for _, word := range words(q.Get("query")) {
		bare := strings.TrimLeft(word, "-!")
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

// term reads one term.
func (s *search) term(word string, zone *time.Location) (func(*gen.Message) bool, error) {
	name, value, filter := strings.Cut(word, ":")
	value = strings.Trim(value, `"`)
	if !filter || strings.HasPrefix(word, `"`) {
		s.text = true
		word = strings.Trim(word, `"`)
		return func(m *gen.Message) bool {
			return vendorapi.Contains(m.Subject, word) || vendorapi.Contains(m.Text.Or(""), word) ||
				people(word, m.To, m.Cc, vendorapi.From(m))
		}, nil
	}
	var term func(m *gen.Message) bool
	switch name = strings.ToLower(name); name {
	case "from":
		term = func(m *gen.Message) bool { return people(value, vendorapi.From(m)) }
	case "to":
		term = func(m *gen.Message) bool { return people(value, m.To) }
	case "cc":
		term = func(m *gen.Message) bool { return people(value, m.Cc) }
	case "bcc":
		term = func(m *gen.Message) bool {
			return vendorapi.Contains(m.DeliveredTo.Or(""), value) && !people(value, m.To, m.Cc)
		}
	case "reply-to":
		term = func(m *gen.Message) bool { return people(value, m.ReplyTo) }
	case "addressed":
		term = func(m *gen.Message) bool {
			return people(value, m.To, m.Cc, m.ReplyTo, vendorapi.From(m)) || vendorapi.Contains(m.DeliveredTo.Or(""), value)
		}
	case "subject":
		term = func(m *gen.Message) bool { return vendorapi.Contains(m.Subject, value) }
	case "message-id":
		term = func(m *gen.Message) bool { return vendorapi.Contains(messageID(m), strings.Trim(value, "<>")) }
	case "has":
		if inline := strings.HasPrefix(value, "inline"); inline || strings.HasPrefix(value, "attachment") {
			term = func(m *gen.Message) bool {
				return slices.ContainsFunc(m.Attachments, func(a gen.Attachment) bool { return a.Inline == inline })
			}
		}
	case "before", "after":
		if at, err := time.ParseInLocation(time.DateOnly, strings.ReplaceAll(value, "/", "-"), zone); err == nil {
			term = func(m *gen.Message) bool { return m.CreatedAt.Before(at) == (name == "before") }
		}
	}
	if term == nil {
		return nil, vendorapi.Unsupported("the search " + word)
	}
	return term, nil
}

// people reports whether the name or address of one of them contains text.
func people(text string, lists ...[]gen.MailAddress) bool {
	return slices.ContainsFunc(slices.Concat(lists...), func(a gen.MailAddress) bool {
		return vendorapi.Contains(a.Email, text) || vendorapi.Contains(a.Name.Or(""), text)
	})
}
