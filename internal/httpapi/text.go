package httpapi

import (
	"bytes"
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

// UncleanText returns the path of the first string of a JSON document that is
// not clean text, in any escaping. The document must be valid.
func UncleanText(doc []byte) (path string, found bool) {
	if !mayBeUnclean(doc) {
		return "", false
	}
	f := textFinder{}
	_ = f.value(jx.DecodeBytes(doc), "") // the document is valid
	return f.path, f.found
}

type textFinder struct {
	path  string
	found bool
}

func (f *textFinder) note(path string, bad bool) {
	if bad && !f.found {
		f.path, f.found = path, true
	}
}

func (f *textFinder) value(d *jx.Decoder, path string) error {
	switch d.Next() {
	case jx.String:
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		s, err := jx.DecodeBytes(raw).Str()
		f.note(path, err != nil || !CleanText(s) || halfCharacter(raw))
		return nil
	case jx.Array:
		i := -1
		return d.Arr(func(d *jx.Decoder) error {
			i++
			return f.value(d, path+"["+strconv.Itoa(i)+"]")
		})
	case jx.Object:
		return d.Obj(func(d *jx.Decoder, key string) error {
			// The decoder replaces unpaired surrogates in names with this rune.
			f.note(path, !CleanText(key) || strings.ContainsRune(key, utf8.RuneError))
			return f.value(d, JoinPath(path, key))
		})
	default:
		return d.Skip()
	}
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
// with duplicate fields.
func (c *Chain) checkText(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	if name, bad := badParam(req.Params); bad {
		return middleware.Response{}, Invalid(name, uncleanText)
	}
	if path, found := UncleanText(req.RawBody); found {
		return middleware.Response{}, Invalid(cut(path), uncleanText)
	}
	if path, found := DuplicateField(req.RawBody); found {
		return middleware.Response{}, Invalid(cut(path), "is given twice")
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
