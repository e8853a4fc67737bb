package httpapi

import (
	"bytes"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/jx"
)

const (
	// maxDepth is how deep a JSON document may nest. The contract needs far less.
	maxDepth = 100
	// maxExplained limits the values of a body that is explained. Each may have a fault,
	// which takes memory.
	maxExplained = 10_000
)

const uncleanText = "must be UTF-8 text without NUL characters"

// CleanText reports whether every database can store s: it is UTF-8 without NUL.
func CleanText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// readBody reads a JSON document up to the first fault that no schema describes: a
// string in any escaping that is not clean text, a field that is given twice, or too
// many levels. Parsers disagree about duplicates (RFC 8259 section 4), so one may miss
// what another sees.
func readBody(body []byte) bodyReader {
	r := bodyReader{order: map[string]int{}, texts: !utf8.Valid(body)}
	for _, escape := range []string{`\u0000`, `\ud`, `\uD`} { // which may make a string unclean
		r.texts = r.texts || bytes.Contains(body, []byte(escape))
	}
	_ = r.value(jx.DecodeBytes(body)) // an error is a fault, because the decoder has read the body
	return r
}

type bodyReader struct {
	fault  *Fault
	values int            // how many there are
	order  map[string]int // the positions of the fields
	texts  bool           // strings must be checked
	path   []string       // to the value that is read
}

var errFault = errors.New("the body has a fault")

func (r *bodyReader) fail(message string) error {
	r.fault = &Fault{Message: message}
	for _, name := range r.path {
		r.fault.Param = JoinPath(r.fault.Param, name)
	}
	return errFault
}

func (r *bodyReader) value(d *jx.Decoder) error {
	r.values++
	switch kind := d.Next(); {
	case kind == jx.Object:
		names := map[string]bool{}
		return d.Obj(func(d *jx.Decoder, name string) error {
			// The decoder replaces unpaired surrogates in names with this rune.
			if r.texts && (!CleanText(name) || strings.ContainsRune(name, utf8.RuneError)) {
				return r.fail(uncleanText)
			}
			if names[name] {
				r.path = append(r.path, name)
				return r.fail("is given twice")
			}
			names[name] = true
			if len(r.path) == 0 {
				r.order[name] = len(names)
			}
			return r.below(d, name)
		})
	case kind == jx.Array:
		n := -1
		return d.Arr(func(d *jx.Decoder) error {
			n++
			return r.below(d, "["+strconv.Itoa(n)+"]")
		})
	case kind == jx.String && r.texts:
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		if s, err := jx.DecodeBytes(raw).Str(); err != nil || !CleanText(s) || halfCharacter(raw) {
			return r.fail(uncleanText)
		}
		return nil
	}
	return d.Skip()
}

// below reads a value below the current one.
func (r *bodyReader) below(d *jx.Decoder, name string) error {
	if len(r.path) == maxDepth {
		return r.fail("is nested too deep: at most " + strconv.Itoa(maxDepth) + " levels are possible")
	}
	r.path = append(r.path, name)
	err := r.value(d)
	r.path = r.path[:len(r.path)-1]
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
