package handlers

import (
	"bytes"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/go-faster/jx"
	"github.com/ogen-go/ogen/middleware"

	"github.com/postroom/postroom/gen"
)

// checkText refuses bodies with text that no database keeps: bytes that are not
// UTF-8, and NUL, however it is written.
func (a *API) checkText(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	if !utf8.Valid(req.RawBody) || bytes.Contains(req.RawBody, []byte(`\u0000`)) || bytes.IndexByte(req.RawBody, 0) >= 0 {
		if place, found := badText(req.RawBody); found {
			return middleware.Response{}, &apiError{
				status: http.StatusBadRequest, code: gen.ErrorCodeInvalidRequest, param: cut(place),
				message: cut(place) + " is not UTF-8 text, or holds a NUL",
			}
		}
	}
	return next(req)
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

func (f *textFinder) value(d *jx.Decoder, path string) error {
	switch d.Next() {
	case jx.String:
		s, err := d.Str()
		if err == nil && !f.found && !cleanText(s) {
			f.place, f.found = path, true
		}
		return err
	case jx.Array:
		i := -1
		return d.Arr(func(d *jx.Decoder) error {
			i++
			return f.value(d, path+"["+strconv.Itoa(i)+"]")
		})
	case jx.Object:
		return d.Obj(func(d *jx.Decoder, key string) error {
			if !f.found && !cleanText(key) {
				f.place, f.found = path, true
			}
			return f.value(d, joinPath(path, key))
		})
	default:
		return d.Skip()
	}
}
