package handlers

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
	"github.com/postroom/postroom/internal/httpapi"
)

const noText = "is not UTF-8 text, or holds a NUL"

// checkText refuses parameters and bodies with text that no database keeps:
// bytes that are not UTF-8, NUL, and halves of a character, however written. It
// also refuses objects that say a thing twice.
func (a *API) checkText(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	if name, bad := badParam(req.Params); bad {
		return middleware.Response{}, invalid(name, noText)
	}
	if suspect(req.RawBody) {
		if place, found := badText(req.RawBody); found {
			return middleware.Response{}, invalid(cut(place), noText)
		}
	}
	if place, found := givenTwice(req.RawBody); found {
		return middleware.Response{}, invalid(cut(place), "is given twice")
	}
	return next(req)
}

// badParam finds a parameter, of the query or a header, that is not clean text.
// Those of the path were looked at before.
func badParam(params middleware.Parameters) (name string, found bool) {
	var bad []string
	for key, v := range params {
		s, ok := v.(string)
		if opt, isOpt := v.(gen.OptString); isOpt {
			s, ok = opt.Get()
		}
		if ok && key.In != openapi.LocationPath && !cleanText(s) {
			bad = append(bad, key.Name)
		}
	}
	if len(bad) == 0 {
		return "", false
	}
	return slices.Min(bad), true
}

// cleanText says whether s can be kept by any database: UTF-8 without NUL.
func cleanText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// suspect says whether a JSON document may hold text that is not clean.
func suspect(doc []byte) bool {
	return !utf8.Valid(doc) || bytes.Contains(doc, []byte(`\u0000`)) || bytes.Contains(doc, []byte(`\ud`)) || bytes.Contains(doc, []byte(`\uD`))
}

// badText finds the first string of a JSON document that is not clean text.
func badText(doc []byte) (place string, found bool) {
	f := textFinder{}
	_ = f.value(jx.DecodeBytes(doc), "") // it was decoded before; only the place matters
	return f.place, f.found
}

type textFinder struct {
	place string
	found bool
}

func (f *textFinder) note(path string, bad bool) {
	if bad && !f.found {
		f.place, f.found = path, true
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
		f.note(path, err != nil || !cleanText(s) || halfCharacter(raw))
		return nil
	case jx.Array:
		i := -1
		return d.Arr(func(d *jx.Decoder) error {
			i++
			return f.value(d, path+"["+strconv.Itoa(i)+"]")
		})
	case jx.Object:
		return d.Obj(func(d *jx.Decoder, key string) error {
			// How a name was written is lost here. What stands for a half
			// character in it would be strange in a name anyway.
			f.note(path, !cleanText(key) || strings.ContainsRune(key, utf8.RuneError))
			return f.value(d, httpapi.JoinPath(path, key))
		})
	default:
		return d.Skip()
	}
}

// halfCharacter says whether a JSON string holds an escape for one half of a
// surrogate pair without the other: no text has such a character.
func halfCharacter(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		first, isUnicode := escaped(raw[i:])
		i++ // over what is escaped
		if !isUnicode || !utf16.IsSurrogate(first) {
			continue
		}
		second, _ := escaped(raw[i+5:])
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return true
		}
		i += 10 // over both
	}
	return false
}

// escaped reads an escape such as \u00e4.
func escaped(raw []byte) (r rune, ok bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}
