package template

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// renderer inserts the values of one message.
type renderer struct {
	data    map[string]any
	missing []string
	seen    map[string]bool // the paths in missing
}

// output is the part rendered so far.
type output struct {
	strings.Builder
	part Part
}

// add appends s, unless the part becomes longer than may be sent.
func (o *output) add(s string) error {
	if o.Len()+len(s) > most[o.part]*utf8.UTFMax {
		return o.tooLong()
	}
	o.WriteString(s)
	return nil
}

func (o *output) tooLong() error {
	return &Error{Part: o.part, Reason: "renders to more than " + strconv.Itoa(most[o.part]) + " characters"}
}

func (r *renderer) render(c compiled) (string, error) {
	out := output{part: c.part}
	for _, p := range c.pieces {
		if err := r.piece(&out, p); err != nil {
			return "", err
		}
	}
	if utf8.RuneCountInString(out.String()) > most[c.part] {
		return "", out.tooLong()
	}
	return out.String(), nil
}

func (r *renderer) piece(out *output, p piece) error {
	switch {
	case p.link != nil:
		return r.link(out, p.link)
	case p.keys == nil:
		return out.add(p.literal)
	}
	value, err := r.value(out.part, p)
	if err != nil {
		return err
	}
	if out.Len()+len(value) > most[out.part]*utf8.UTFMax {
		return out.tooLong() // before escaping makes it longer
	}
	return out.add(p.written(out.part, value))
}

// written returns a value escaped for its place.
func (p piece) written(part Part, value string) string {
	switch {
	case part != HTML, p.raw:
		return value
	case (p.place == inStyle || p.place == inSheet) && !plainStyle(value):
		return ""
	case p.place == inSheet: // a style sheet does not decode &#39;
		return value
	}
	return html.EscapeString(value)
}

// plainStyle reports whether a value can neither end the value of a style property nor load
// something. The names of fonts may be in quotes.
func plainStyle(value string) bool {
	quote := rune(0) // the open quote
	for _, r := range value {
		switch {
		case r == '"' || r == '\'':
			switch quote {
			case 0:
				quote = r
			case r:
				quote = 0
			default:
				return false
			}
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" #%.,_-", r):
		default:
			return false
		}
	}
	return quote == 0
}

// nowhere is the address of a disabled link.
const nowhere = "#"

// link renders the address of a link. With a scheme that is not harmless, the link is
// disabled.
func (r *renderer) link(out *output, parts []piece) error {
	address := output{part: out.part}
	for _, p := range parts {
		if err := r.piece(&address, p); err != nil {
			return err
		}
	}
	if scheme, ok := schemeOf(html.UnescapeString(address.String())); ok && !slices.Contains(harmless, scheme) {
		return out.add(nowhere)
	}
	return out.add(address.String())
}

// harmless are the schemes that a value may contain. The template itself may use others.
var harmless = []string{"http", "https", "mailto", "tel", "sms", "cid"}

// schemeOf returns the scheme of an address in lower case, as browsers find it: they ignore
// line breaks and tabs, and control characters before it (URL standard, 4.4).
func schemeOf(address string) (scheme string, ok bool) {
	address = strings.TrimLeftFunc(address, func(r rune) bool { return r <= ' ' })
	address = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(address)
	for i := range len(address) {
		c := address[i] | 0x20
		switch {
		case c >= 'a' && c <= 'z', i > 0 && strings.IndexByte("0123456789+-.", address[i]) >= 0:
		case i > 0 && address[i] == ':':
			return strings.ToLower(address[:i]), true
		default:
			return "", false
		}
	}
	return "", false
}

// value returns the value of a variable as text.
func (r *renderer) value(part Part, p piece) (string, error) {
	fault := func(reason string) error { return &Error{Part: part, Variable: p.path, Reason: reason} }
	var at any = r.data
	for _, key := range p.keys {
		object, _ := at.(map[string]any)
		at = object[key]
	}
	switch v := at.(type) {
	case nil:
		if !r.seen[p.path] {
			r.seen[p.path] = true
			r.missing = append(r.missing, p.path)
		}
		return "", nil
	case string:
		if part == Subject && strings.ContainsFunc(v, endsLine) {
			return "", fault("may not hold line breaks or control characters: it is part of the subject")
		}
		return v, nil
	case bool, float64, json.Number:
		return fmt.Sprint(v), nil
	}
	return "", fault("is an object or a list: use a string, a number, true or false")
}

// endsLine reports whether a character is not allowed in a header field.
func endsLine(r rune) bool {
	return r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029
}
