package httpapi

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/ogen-go/ogen/middleware"
	"github.com/ogen-go/ogen/openapi"

	"github.com/postroom/postroom/internal/nearname"
)

const (
	apiPath  = "/v1/"
	filePath = "/v1/files/"
)

// checkQuery refuses query parameters that the operation does not have: a
// misspelled filter must not return everything. It checks only the API. People open
// download links, and other programs append parameters to them; links in mail and
// MCP are not below /v1. It also notes the operation for the report of the response.
func (c *Chain) checkQuery(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	infoOf(req.Context).operation = req.OperationID
	path := req.Raw.URL.Path
	if req.Raw.URL.RawQuery == "" || !strings.HasPrefix(path, apiPath) || strings.HasPrefix(path, filePath) {
		return next(req)
	}
	var known []string
	for key := range req.Params {
		if key.In == openapi.LocationQuery {
			known = append(known, key.Name)
		}
	}
	slices.Sort(known)
	if faults := unknownParams(req.Raw.URL.Query(), known); len(faults) > 0 {
		return middleware.Response{}, c.explained(req.Raw, faults[0].Param, faults, nil)
	}
	return next(req)
}

// unknownParams returns a fault for each parameter that is not known.
func unknownParams(query url.Values, known []string) []Fault {
	var all []Fault
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(known, name) || len(all) == MaxFaults {
			continue
		}
		say := "is not a parameter of this request" + nearname.Hint(name, known)
		all = append(all, Fault{strings.ToValidUTF8(name, "\uFFFD"), say})
	}
	return all
}
