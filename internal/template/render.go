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
	items   []item // of the open {{#each}} blocks
	steps   int
	missing []string
	seen    map[string]bool // the paths in missing
}

// item is an item of a list.
type item struct {
	value any
	list  piece
	of    int // the item that the path of the list begins at
}

// ofData is in place of an item for a path that begins at the data.
const ofData = -1

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
	if err := r.pieces(&out, c.pieces); err != nil {
		return "", err
	}
	if utf8.RuneCountInString(out.String()) > most[c.part] {
		return "", out.tooLong()
	}
	return out.String(), nil
}

func (r *renderer) pieces(out *output, all []piece) error {
	for _, p := range all {
		if err := r.piece(out, p); err != nil {
			return err
		}
	}
	return nil
}

// maxSteps bounds the time of blocks that repeat each other. So many bytes of a value, which
// may be left out in the end, take as long as a step.
const maxSteps, stepBytes = 1_000_000, 64

// step counts what takes time: pieces, the names of their paths, and items.
func (r *renderer) step(part Part, n int) error {
	if r.steps += n; r.steps > maxSteps {
		return &Error{Part: part, Reason: "repeats too much: its blocks take more than " + strconv.Itoa(maxSteps) + " steps"}
	}
	return nil
}

func (r *renderer) piece(out *output, p piece) error {
	if err := r.step(out.part, 1+len(p.keys)); err != nil {
		return err
	}
	switch {
	case p.block != nil:
		return r.block(out, p)
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
	if err := r.step(out.part, len(value)/stepBytes); err != nil {
		return err
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
	if err := r.pieces(&address, parts); err != nil {
		return err
	}
	if err := r.step(out.part, address.Len()/stepBytes); err != nil {
		return err
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

// block renders a block.
func (r *renderer) block(out *output, p piece) error {
	value, of := r.find(p)
	if n, ok := value.(json.Number); ok {
		if err := r.step(out.part, len(n)/stepBytes); err != nil {
			return err
		}
	}
	if !p.block.each {
		if holds(value) {
			return r.pieces(out, p.block.body)
		}
		return r.pieces(out, p.block.not)
	}
	list, ok := value.([]any)
	switch {
	case value == nil:
		r.miss(p, of)
	case !ok:
		return &Error{Part: out.part, Variable: r.path(p, of), Reason: "is not a list: {{#each}} repeats its block for each item of a list"}
	}
	if len(list) == 0 {
		return r.pieces(out, p.block.not)
	}
	for _, v := range list {
		if err := r.step(out.part, 1); err != nil {
			return err
		}
		r.items = append(r.items, item{v, p, of})
		err := r.pieces(out, p.block.body)
		r.items = r.items[:len(r.items)-1]
		if err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether {{#if}} shows its block for a value: it is not null, false, 0, ""
// or an empty list.
func holds(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case float64:
		return v != 0
	case json.Number:
		f, err := v.Float64()
		return f != 0 || err != nil
	case []any:
		return len(v) > 0
	}
	return true
}

// this is the name of the item of a list.
const this = "this"

// find returns the value of a variable or nil, and the item that its path begins at, or
// ofData. In a block of {{#each}}, a name is first that of a field of the item, then that of
// a field of what is around it.
func (r *renderer) find(p piece) (value any, of int) {
	last := len(r.items) - 1
	if last != ofData && p.keys[0] == this {
		return follow(r.items[last].value, p.keys[1:]), last
	}
	for of = last; of != ofData; of-- {
		fields, _ := r.items[of].value.(map[string]any)
		if _, ok := fields[p.keys[0]]; ok {
			return follow(fields, p.keys), of
		}
	}
	if _, ok := r.data[p.keys[0]]; !ok {
		return nil, last
	}
	return follow(r.data, p.keys), ofData
}

// path returns the path of a variable from the data.
func (r *renderer) path(p piece, of int) string {
	if of == ofData {
		return p.path
	}
	list := r.path(r.items[of].list, r.items[of].of)
	if p.keys[0] == this {
		return list + p.path[len(this):]
	}
	return list + "." + p.path
}

// follow returns the value at a path in a value, or nil.
func follow(value any, keys []string) any {
	for _, key := range keys {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

func (r *renderer) miss(p piece, of int) {
	if path := r.path(p, of); !r.seen[path] {
		r.seen[path] = true
		r.missing = append(r.missing, path)
	}
}

// value returns the value of a variable as text.
func (r *renderer) value(part Part, p piece) (string, error) {
	found, of := r.find(p)
	fault := func(reason string) error { return &Error{Part: part, Variable: r.path(p, of), Reason: reason} }
	switch v := found.(type) {
	case nil:
		r.miss(p, of)
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
