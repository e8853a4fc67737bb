package template

import (
	"cmp"
	"slices"
	"strings"
)

// Sample returns data for a preview, in which each variable has its own name as its value.
// {{#if}} shows its first text, and a list has two items, or one inside another list.
func (m *Template) Sample() map[string]any {
	data := &sample{fields: map[string]*sample{}}
	for _, c := range m.parts {
		data.needs(c.pieces, nil)
	}
	return data.values(2)
}

// sample is what a template needs of a value.
type sample struct {
	text   string // empty if only {{#if}} needs it
	fields map[string]*sample
	item   *sample // of a list
}

// needs adds what pieces need. s has the names in them, and item is the item of the list
// that they are repeated for, or nil.
func (s *sample) needs(pieces []piece, item *sample) {
	for _, p := range pieces {
		s.needs(p.link, item)
		if p.keys == nil {
			continue
		}
		from, keys := s, p.keys
		if item != nil && keys[0] == this {
			from, keys = item, keys[1:]
		}
		value, name := from.at(keys), cmp.Or(strings.Join(keys, "."), from.text, this)
		switch {
		case p.block == nil:
			value.text = name
		case p.block.each:
			if value.item == nil {
				value.item = &sample{}
			}
			names := value.item
			if wholeItems(p.block.body) {
				value.item.text, names = name, s
			}
			names.needs(p.block.body, value.item)
			s.needs(p.block.not, item)
		default:
			s.needs(p.block.body, item)
			s.needs(p.block.not, item)
		}
	}
}

// at returns the sample at a path in s.
func (s *sample) at(keys []string) *sample {
	for _, key := range keys {
		if s.fields == nil {
			s.fields = map[string]*sample{}
		}
		if s.fields[key] == nil {
			s.fields[key] = &sample{}
		}
		s = s.fields[key]
	}
	return s
}

// wholeItems reports whether the text of a list has {{this}}, so that its items are not
// objects.
func wholeItems(body []piece) bool {
	return slices.ContainsFunc(body, func(p piece) bool {
		switch {
		case p.block == nil:
			return p.path == this || wholeItems(p.link)
		case p.block.each:
			return p.path == this
		}
		return wholeItems(p.block.body) || wholeItems(p.block.not)
	})
}

// values returns the fields of s, in which lists have so many items.
func (s *sample) values(items int) map[string]any {
	out := make(map[string]any, len(s.fields))
	for name, field := range s.fields {
		out[name] = field.value(items)
	}
	return out
}

func (s *sample) value(items int) any {
	switch {
	case s.item != nil:
		return slices.Repeat([]any{s.item.value(1)}, items) // more inside each other would be too many
	case s.fields != nil:
		return s.values(items)
	case s.text != "":
		return s.text
	}
	return true
}
