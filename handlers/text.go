package handlers

import (
	"slices"

	"github.com/ogen-go/ogen/middleware"
	"github.com/ogen-go/ogen/openapi"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
)

const uncleanText = "must be UTF-8 text without NUL characters"

// checkText refuses parameters and bodies with text that databases cannot
// store: invalid UTF-8, NUL and unpaired surrogates. It also refuses objects
// with duplicate fields.
func (a *API) checkText(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	if name, bad := badParam(req.Params); bad {
		return middleware.Response{}, httpapi.Invalid(name, uncleanText)
	}
	if path, found := httpapi.UncleanText(req.RawBody); found {
		return middleware.Response{}, httpapi.Invalid(cut(path), uncleanText)
	}
	if path, found := httpapi.DuplicateField(req.RawBody); found {
		return middleware.Response{}, httpapi.Invalid(cut(path), "is given twice")
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
		if ok && key.In != openapi.LocationPath && !httpapi.CleanText(s) {
			bad = append(bad, key.Name)
		}
	}
	if len(bad) == 0 {
		return "", false
	}
	return slices.Min(bad), true
}
