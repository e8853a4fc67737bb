package httpapi

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-faster/jx"
	"github.com/ogen-go/ogen/middleware"
	"github.com/ogen-go/ogen/openapi"

	"github.com/postroom/postroom/gen"
)

// CleanText reports whether every database can store s: it is UTF-8 without NUL.
func CleanText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// mayBeUnclean reports whether a JSON document may contain unclean text.
func mayBeUnclean(doc []byte) bool {
	return !utf8.Valid(doc) || bytes.Contains(doc, []byte(`\u0000`)) || bytes.Contains(doc, []byte(`\ud`)) || bytes.Contains(doc, []byte(`\uD`))
}

const (
	// maxDepth is how deep a JSON document may nest. The contract needs far less.
	maxDepth = 100
	// fewNames is the largest number of names that an object checks without a map.
	fewNames = 16
)

// bodyFault returns the path of the first string of a JSON document that is not clean
// text, in any escaping, or else of the first duplicate field of an object, and what is
// wrong. Parsers disagree about duplicates (RFC 8259 section 4), so one may miss what
// another sees. The document must be valid.
func bodyFault(doc []byte) (path, fault string) {
	f := bodyWalker{texts: mayBeUnclean(doc)}
	_ = f.value(jx.DecodeBytes(doc)) // an error is one of f, because the document is valid
	switch {
	case f.deep != "":
		return f.deep, "is nested too deep: at most " + strconv.Itoa(maxDepth) + " levels are possible"
	case f.unclean != nil:
		return *f.unclean, uncleanText
	case f.duplicate != nil:
		return *f.duplicate, "is given twice"
	}
	return "", ""
}

// bodyWalker reads a document. Its memory is linear in the document: paths become text
// only for a fault.
type bodyWalker struct {
	texts              bool   // strings must be checked
	path               []step // to the value that is read
	unclean, duplicate *string
	deep               string
}

// step is a field of an object, or an item of an array without a name.
type step struct {
	name  string
	index int
}

var errDeep = errors.New("nested too deep")

// note sets *fault to the current path, if it is the first such fault.
func (f *bodyWalker) note(fault **string) {
	if *fault == nil {
		path := f.at()
		*fault = &path
	}
}

func (f *bodyWalker) at() string {
	var b strings.Builder
	for i, s := range f.path {
		switch {
		case s.index >= 0:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case i > 0:
			b.WriteString("." + s.name)
		default:
			b.WriteString(s.name)
		}
	}
	return b.String()
}

// below reads a value below the current one.
func (f *bodyWalker) below(d *jx.Decoder, s step) error {
	if t := d.Next(); t != jx.Object && t != jx.Array && (t != jx.String || !f.texts) {
		return d.Skip()
	}
	if len(f.path) == maxDepth {
		f.deep = f.at()
		return errDeep
	}
	f.path = append(f.path, s)
	err := f.value(d)
	f.path = f.path[:len(f.path)-1]
	return err
}

func (f *bodyWalker) value(d *jx.Decoder) error {
	switch d.Next() {
	case jx.String:
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		if s, err := jx.DecodeBytes(raw).Str(); err != nil || !CleanText(s) || halfCharacter(raw) {
			f.note(&f.unclean)
		}
		return nil
	case jx.Array:
		i := -1
		return d.Arr(func(d *jx.Decoder) error {
			i++
			return f.below(d, step{index: i})
		})
	case jx.Object:
		return f.object(d)
	default:
		return d.Skip()
	}
}

func (f *bodyWalker) object(d *jx.Decoder) error {
	var few []string
	var many map[string]bool
	return d.Obj(func(d *jx.Decoder, name string) error {
		// The decoder replaces unpaired surrogates in names with this rune.
		if f.texts && (!CleanText(name) || strings.ContainsRune(name, utf8.RuneError)) {
			f.note(&f.unclean)
		}
		if len(few) == fewNames && many == nil {
			many = make(map[string]bool, 2*fewNames)
			for _, n := range few {
				many[n] = true
			}
		}
		field := step{name, -1}
		if many[name] || many == nil && slices.Contains(few, name) {
			f.path = append(f.path, field)
			f.note(&f.duplicate)
			f.path = f.path[:len(f.path)-1]
		}
		if many != nil {
			many[name] = true
		} else {
			few = append(few, name)
		}
		return f.below(d, field)
	})
}

// halfCharacter reports whether a JSON string escapes an unpaired surrogate.
func halfCharacter(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		first, isUnicode := escaped(raw[i:])
		i++ // past the escaped character
		if !isUnicode || !utf16.IsSurrogate(first) {
			continue
		}
		second, _ := escaped(raw[i+5:])
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return true
		}
		i += 10 // past both
	}
	return false
}

// escaped parses an escape such as \u00e4.
func escaped(raw []byte) (r rune, ok bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}

const uncleanText = "must be UTF-8 text without NUL characters"

// checkText refuses parameters and bodies with text that databases cannot
// store: invalid UTF-8, NUL and unpaired surrogates. It also refuses objects
// with duplicate fields, and bodies that nest too deep.
func (c *Chain) checkText(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	if name, bad := badParam(req.Params); bad {
		return middleware.Response{}, Invalid(name, uncleanText)
	}
	if path, fault := bodyFault(req.RawBody); fault != "" {
		return middleware.Response{}, Invalid(cut(path), "%s", fault)
	}
	return next(req)
}

// badParam returns a query or header parameter with invalid text. refuseEarly
// checks the path.
func badParam(params middleware.Parameters) (name string, found bool) {
	var bad []string
	for key, v := range params {
		s, ok := v.(string)
		if opt, isOpt := v.(gen.OptString); isOpt {
			s, ok = opt.Get()
		}
		if ok && key.In != openapi.LocationPath && !CleanText(s) {
			bad = append(bad, key.Name)
		}
	}
	if len(bad) == 0 {
		return "", false
	}
	return slices.Min(bad), true
}
