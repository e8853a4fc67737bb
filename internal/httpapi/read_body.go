package httpapi

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/jx"
)

const (
	// maxDepth is how deep a JSON document may nest. The contract needs far less.
	maxDepth = 100
	// maxValues limits how many values of a body are validated. Each fault takes memory,
	// so this limits what a body full of faults takes.
	maxValues = 10_000
)

const uncleanText = "must be UTF-8 text without NUL characters"

// CleanText reports whether every database can store s: it is UTF-8 without NUL.
func CleanText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// document is a JSON body, or the value of a parameter.
type document struct {
	root  any
	order map[string]int // the positions of the fields of a body
	cut   bool           // values are left out
}

// readBody reads a JSON document up to the first fault that no schema describes: a
// string in any escaping that is not clean text, a field that is given twice, or too
// many levels. Parsers disagree about duplicates (RFC 8259 section 4), so one may miss
// what another sees. The document is empty unless keep is set.
func readBody(body []byte, keep bool) (document, *Fault) {
	r := bodyReader{keep: keep, left: maxValues, doc: document{order: map[string]int{}}}
	r.texts = !utf8.Valid(body) // or an escape may make it unclean
	for _, escape := range []string{`\u0000`, `\ud`, `\uD`} {
		r.texts = r.texts || bytes.Contains(body, []byte(escape))
	}
	r.doc.root, _ = r.value(jx.DecodeBytes(body)) // an error is a fault, because the decoder has read the body
	return r.doc, r.fault
}

type bodyReader struct {
	doc   document
	keep  bool
	left  int      // how many values may still be kept
	texts bool     // strings must be checked
	path  []string // to the value that is read
	fault *Fault
}

var errFault = errors.New("the body has a fault")

func (r *bodyReader) fail(message string) error {
	r.fault = &Fault{Message: message}
	for _, name := range r.path {
		r.fault.Param = JoinPath(r.fault.Param, name)
	}
	return errFault
}

func (r *bodyReader) value(d *jx.Decoder) (any, error) {
	switch d.Next() {
	case jx.Object:
		return r.object(d)
	case jx.Array:
		list, n := []any{}, 0
		err := d.Arr(func(d *jx.Decoder) error {
			n++
			return r.below(d, "["+strconv.Itoa(n-1)+"]", func(v any) { list = append(list, v) })
		})
		return list, err
	case jx.String:
		if !r.keep && !r.texts {
			return nil, d.Skip()
		}
		raw, err := d.Raw()
		if err != nil {
			return nil, err
		}
		s, err := jx.DecodeBytes(raw).Str()
		if r.texts && (err != nil || !CleanText(s) || halfCharacter(raw)) {
			return nil, r.fail(uncleanText)
		}
		return s, err
	case jx.Number:
		n, err := d.Num()
		return number(n.String()), err
	case jx.Bool:
		return d.Bool()
	default:
		return nil, d.Null()
	}
}

func (r *bodyReader) object(d *jx.Decoder) (any, error) {
	fields := map[string]any{}
	err := d.Obj(func(d *jx.Decoder, name string) error {
		// The decoder replaces unpaired surrogates in names with this rune.
		if r.texts && (!CleanText(name) || strings.ContainsRune(name, utf8.RuneError)) {
			return r.fail(uncleanText)
		}
		if _, twice := fields[name]; twice {
			r.path = append(r.path, name)
			return r.fail("is given twice")
		}
		if len(r.path) == 0 {
			r.doc.order[name] = len(fields)
		}
		if !r.keep {
			fields[name] = nil
		}
		return r.below(d, name, func(v any) { fields[name] = v })
	})
	return fields, err
}

// below reads a value below the current one.
func (r *bodyReader) below(d *jx.Decoder, name string, keep func(any)) error {
	if len(r.path) == maxDepth {
		return r.fail("is nested too deep: at most " + strconv.Itoa(maxDepth) + " levels are possible")
	}
	if r.left--; r.keep && r.left < 0 {
		r.doc.cut = true
		return d.Skip()
	}
	r.path = append(r.path, name)
	v, err := r.value(d)
	r.path = r.path[:len(r.path)-1]
	if r.keep {
		keep(v)
	}
	return err
}

var (
	pair = regexp.MustCompile(`(?i)\\ud[89ab]..\\ud[c-f]..`)
	half = regexp.MustCompile(`(?i)\\ud[89a-f]`)
)

// halfCharacter reports whether a JSON string escapes an unpaired surrogate.
func halfCharacter(raw []byte) bool {
	raw = bytes.ReplaceAll(raw, []byte(`\\`), []byte("--")) // escaped backslashes
	return half.Match(pair.ReplaceAll(raw, nil))
}

// number returns a JSON number in a form that is cheap to compare.
func number(text string) float64 {
	f, _ := strconv.ParseFloat(text, 64) // infinite if it is out of range
	return max(-math.MaxFloat64, min(math.MaxFloat64, f))
}
