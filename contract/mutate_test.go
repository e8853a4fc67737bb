package contract_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// mutant is a request body with one change.
type mutant struct {
	where string // such as to[1].email, or empty for the whole body
	what  string // the change
	body  []byte
}

// mutator changes the examples of one operation, one place at a time.
type mutator struct {
	all  []mutant
	seen map[string]bool
}

func newMutator() *mutator { return &mutator{seen: map[string]bool{}} }

// mutants changes an example in every place: a value of each type, shorter and
// longer values, and the limits of its schemas. It skips changes that an
// earlier example has covered.
func (m *mutator) mutants(example any, s schemas) []mutant {
	m.all = nil
	m.visit("", example, s, func(v any) any { return v })
	return m.all
}

// literal is JSON text that Go does not produce.
type literal string

// MarshalJSON implements json.Marshaler.
func (l literal) MarshalJSON() ([]byte, error) { return []byte(l), nil }

// kinds has one value of every kind.
var kinds = []any{nil, true, 7, 1.5, literal(`1.0`), "x", "", []any{}, []any{nil}, map[string]any{}}

// visit adds the mutants of one place and of everything below it. whole returns
// the body with another value in that place.
func (m *mutator) visit(where string, v any, s schemas, whole func(any) any) {
	put := func(what string, value any) { m.add(where, what, whole(value)) }
	for _, kind := range kinds {
		put(fmt.Sprintf("is %v", kind), kind)
	}
	for _, word := range s.words() {
		put(fmt.Sprintf("is the word %v", word), word)
	}
	for _, n := range s.numbers() {
		put(fmt.Sprintf("is %v", n), n)
	}
	switch v := v.(type) {
	case string:
		m.text(where, v, s, put)
	case []any:
		m.list(where, v, s, whole, put)
	case map[string]any:
		m.object(where, v, s, whole, put)
	}
}

// texts are unusual or invalid strings for any field.
var texts = map[string]any{
	"spaces": "  ", "a line break": "a\r\nBcc: b@example.org", "NUL": "a\x00b", "half a character": literal(`"a\ud800b"`),
	"other letters": "zażółć 日本語 🙂", "a tab": "a\tb", "a line separator": "a\u2028b", "mark-up": "<script>", "braces": "{{x}}",
}

// formatted are strings that match a format or almost do.
var formatted = map[string][]string{
	"email": {
		"a@b", "ana@example.org ", "ana", "@example.org", "ana@", "a b@example.org", "Ana <ana@example.org>", "a@b@example.org",
		`"a b"@example.org`, "ana@[192.0.2.1]", "ana@exa mple.org", "ana@example..org", "ána@example.org", "ana@éxample.org",
		"ana@example.org\r\n", "a..b@example.org", strings.Repeat("a", 65) + "@example.org",
	},
	"date-time": {
		"2030-01-01", "2030-01-01T00:00:00", "2030-01-01t00:00:00z", "2030-01-01T00:00:00.123456+02:00", "2030-02-30T00:00:00Z",
		"2030-01-01 00:00:00Z", "2030-01-01T24:00:00Z", "2030-01-01T00:00:60Z", "0001-01-01T00:00:00Z", "2020-01-01T00:00:00Z",
		"9999-12-31T23:59:59Z", "now", "1893456000",
	},
	"byte": {"T3JkZXI", "T3JkZXI=\n", "T3Jk ZXI=", "_-8=", "====", "T3JkZXI=", "T"},
	"uri":  {"example.org", "/x", "javascript:alert(1)", "http://", "https://example.org/ x", "http://127.0.0.1/"},
}

// Strings of this length are slow and tried only once per operation.
const long = 10_000

func (m *mutator) text(where, v string, s schemas, put func(string, any)) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		put("is "+name, texts[name])
	}
	put("is upper case", strings.ToUpper(v))
	put("ends with a space", v+" ")
	for _, n := range s.sizes(textBounds) {
		what := "has the length " + strconv.Itoa(n)
		if n < long || m.first(where+what) {
			put(what, strings.Repeat("a", n))
		}
		if n < long {
			put(what+" in another script", strings.Repeat("ä", n))
		}
	}
	for _, f := range s.formats() {
		for _, text := range formatted[f] {
			put("is "+text, text)
		}
	}
}

func (m *mutator) list(where string, v []any, s schemas, whole func(any) any, put func(string, any)) {
	for _, n := range s.sizes(itemBounds) {
		if len(v) > 0 {
			put("has "+strconv.Itoa(n)+" items", slices.Repeat(v[:1], n))
		}
	}
	if len(v) > 0 {
		put("has an item twice", append(slices.Clone(v), v[0]))
	}
	for i, item := range v {
		m.visit(where+"["+strconv.Itoa(i)+"]", item, s.item(), func(value any) any {
			list := slices.Clone(v)
			list[i] = value
			return whole(list)
		})
	}
}

func (m *mutator) object(where string, v map[string]any, s schemas, whole func(any) any, put func(string, any)) {
	with := func(name string, value any) map[string]any {
		object := maps.Clone(v)
		object[name] = value
		return object
	}
	put("has a member too many", with("surprise", 1))
	if s.open() {
		for what, name := range map[string]string{
			"an empty name": "", "a colon in a name": "a:b", "a space in a name": "a b", "a long name": strings.Repeat("n", 100),
			"NUL in a name": "a\x00", "a line break in a name": "a\r\nb", "a name of 40": strings.Repeat("n", 40),
		} {
			put("has "+what, with(name, "x"))
		}
		for _, n := range s.sizes(memberBounds) {
			put("has "+strconv.Itoa(n)+" members", numbered(n))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		less := maps.Clone(v)
		delete(less, name)
		put("lacks "+name, less)
	}
	for _, name := range once(slices.Concat(slices.Sorted(maps.Keys(v)), s.names())) {
		at := name
		if where != "" {
			at = where + "." + name
		}
		m.visit(at, v[name], s.member(name), func(value any) any { return whole(with(name, value)) })
	}
}

// numbered returns an object with n members.
func numbered(n int) map[string]any {
	object := map[string]any{}
	for i := range n {
		object["n"+strconv.Itoa(i)] = "x"
	}
	return object
}

// add keeps a mutant unless there is an equal one.
func (m *mutator) add(where, what string, body any) {
	b, err := json.Marshal(body)
	if err != nil || !m.first(string(b)) {
		return // not representable as JSON
	}
	m.all = append(m.all, mutant{where, what, b})
}

// first reports whether key is new.
func (m *mutator) first(key string) bool {
	if m.seen[key] {
		return false
	}
	m.seen[key] = true
	return true
}
