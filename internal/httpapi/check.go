package httpapi

import (
	"cmp"
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

// checkRequest refuses what the generated server accepts: text that databases cannot
// store, bodies with faults that no schema describes, and query parameters that the
// operation does not have, because a misspelled filter must not return everything.
// Unknown parameters are refused only in the API. People open download links, and
// other programs append parameters to them; links in mail and MCP are not below /v1.
// It also notes the operation for the report of the response.
func (c *Chain) checkRequest(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	infoOf(req.Context).Operation = req.OperationID
	query, known, faults := req.Raw.URL.Query(), []string{}, []Fault{}
	for key := range req.Params {
		values := req.Raw.Header.Values(key.Name)
		if key.In == openapi.LocationQuery {
			known, values = append(known, key.Name), query[key.Name]
		}
		if !CleanText(strings.Join(values, "")) {
			faults = append(faults, Fault{key.Name, uncleanText})
		}
	}
	slices.Sort(known)
	for name := range query {
		path := req.Raw.URL.Path
		if strings.HasPrefix(path, apiPath) && !strings.HasPrefix(path, filePath) && !slices.Contains(known, name) {
			say := "is not a parameter of this request" + nearname.Hint(name, known)
			faults = append(faults, Fault{strings.ToValidUTF8(name, "\uFFFD"), say})
		}
	}
	slices.SortFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Param, b.Param) })
	if len(faults) > 0 {
		return middleware.Response{}, invalid(faults[:min(len(faults), MaxFaults)])
	}
	if fault := readBody(req.RawBody).fault; fault != nil {
		return middleware.Response{}, invalid([]Fault{*fault})
	}
	if fault := joinAliases(req.Body); fault != nil {
		return middleware.Response{}, invalid([]Fault{*fault})
	}
	return next(req)
}
