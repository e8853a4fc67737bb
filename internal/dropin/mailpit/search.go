package mailpit

import (
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

// parseSearch reads a search: words, phrases in quotes, filters such as from:name, and any
// of them after "-" or "!" for what must not match. Dates are in the time zone tz.
func parseSearch(query, tz string) (s search, err error) {
	zone, err := time.LoadLocation(tz)
	if err != nil {
		return s, httpapi.Invalid("tz", "must be a time zone such as Europe/Berlin")
	}
	for _, word := range words(query) {
		bare := strings.TrimLeft(word, "-!")
		if bare == "" {
			continue
		}
		term, err := s.term(bare, zone)
		if err != nil {
			return s, err
		}
		if bare != word {
			yes := term
			term = func(m *gen.Message) bool { return !yes(m) }
		}
		s.terms = append(s.terms, term)
	}
	return s, nil
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
				people(word, m.To, m.Cc, from(m))
		}, nil
	}
	switch name = strings.ToLower(name); name {
	case "from":
		return func(m *gen.Message) bool { return people(value, from(m)) }, nil
	case "to":
		return func(m *gen.Message) bool { return people(value, m.To) }, nil
	case "cc":
		return func(m *gen.Message) bool { return people(value, m.Cc) }, nil
	case "bcc":
		return func(m *gen.Message) bool {
			return vendorapi.Contains(m.DeliveredTo.Or(""), value) && !people(value, m.To, m.Cc)
		}, nil
	case "reply-to":
		return func(m *gen.Message) bool { return people(value, m.ReplyTo) }, nil
	case "addressed":
		return func(m *gen.Message) bool {
			return people(value, m.To, m.Cc, m.ReplyTo, from(m)) || vendorapi.Contains(m.DeliveredTo.Or(""), value)
		}, nil
	case "subject":
		return func(m *gen.Message) bool { return vendorapi.Contains(m.Subject, value) }, nil
	case "message-id":
		return func(m *gen.Message) bool { return vendorapi.Contains(messageID(m), strings.Trim(value, "<>")) }, nil
	case "has":
		inline := strings.HasPrefix(value, "inline")
		if inline || value == "attachment" || value == "attachments" {
			return func(m *gen.Message) bool {
				return slices.ContainsFunc(m.Attachments, func(a gen.Attachment) bool { return a.Inline == inline })
			}, nil
		}
	case "before", "after":
		for _, layout := range []string{time.DateOnly, "2006/01/02", time.DateTime, time.RFC3339} {
			if at, err := time.ParseInLocation(layout, value, zone); err == nil {
				return func(m *gen.Message) bool { return m.CreatedAt.Before(at) == (name == "before") }, nil
			}
		}
	}
	return nil, vendorapi.Unsupported("the search " + word)
}

func from(m *gen.Message) []gen.MailAddress {
	if from, ok := m.From.Get(); ok {
		return []gen.MailAddress{from}
	}
	return nil
}

// people reports whether the name or address of one of them contains text.
func people(text string, lists ...[]gen.MailAddress) bool {
	return slices.ContainsFunc(slices.Concat(lists...), func(a gen.MailAddress) bool {
		return vendorapi.Contains(a.Email, text) || vendorapi.Contains(a.Name.Or(""), text)
	})
}
