package contractcheck

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Operation is one operation of the contract with its method and path.
type Operation struct {
	*openapi3.Operation
	Method string
	// Path is as in the contract, such as /v1/inboxes/{inbox_id}.
	Path string
	// Shared are the parameters that all operations of the path have.
	Shared openapi3.Parameters

	segments []string
	params   []field
	headers  map[string][]field // by status, or "default"
}

// Name returns the name of the operation in reports.
func (op *Operation) Name() string { return op.OperationID }

// Scopes returns the scopes of the operation; a key needs one of them. keyed is false for
// an operation without a key.
func (op *Operation) Scopes() (scopes []string, keyed bool) {
	if op.Security == nil || len(*op.Security) == 0 {
		return nil, false
	}
	return (*op.Security)[0]["bearerAuth"], true
}

// response returns the documentation of the status, not counting default.
func (op *Operation) response(status int) *openapi3.Response {
	if r := op.Responses.Value(fmt.Sprint(status)); r != nil {
		return r.Value
	}
	return nil
}

// operations lists all operations, grouped by path.
func operations(doc *openapi3.T) []*Operation {
	var ops []*Operation
	for _, path := range doc.Paths.Keys() {
		item := doc.Paths.Value(path)
		for method, op := range item.Operations() {
			ops = append(ops, &Operation{
				Operation: op, Method: method, Path: path, Shared: item.Parameters,
				segments: strings.Split(path, "/"),
			})
		}
	}
	slices.SortFunc(ops, func(a, b *Operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return ops
}

// find returns the operation of a request and its path parameters, or nil. It prefers a
// literal segment to a parameter.
func find(ops []*Operation, method string, u *url.URL) (*Operation, map[string]string) {
	var best *Operation
	var bestParams map[string]string
	for _, op := range ops {
		if op.Method != method {
			continue
		}
		if params, ok := op.match(strings.Split(u.EscapedPath(), "/")); ok && (best == nil || len(params) < len(bestParams)) {
			best, bestParams = op, params
		}
	}
	return best, bestParams
}

func (op *Operation) match(segments []string) (params map[string]string, ok bool) {
	if len(segments) != len(op.segments) {
		return nil, false
	}
	params = map[string]string{}
	for i, want := range op.segments {
		got, err := url.PathUnescape(segments[i])
		if err != nil {
			return nil, false
		}
		if name, isParam := strings.CutPrefix(want, "{"); isParam && got != "" {
			params[strings.TrimSuffix(name, "}")] = got
		} else if got != want {
			return nil, false
		}
	}
	return params, true
}
