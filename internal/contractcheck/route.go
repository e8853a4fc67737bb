package contractcheck

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Operation is one operation of the contract with where it stands.
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

// Name is what the operation is called in reports.
func (op *Operation) Name() string { return op.OperationID }

// Scopes are those of which a key needs any one; keyed is false for an
// operation that needs no key.
func (op *Operation) Scopes() (scopes []string, keyed bool) {
	if op.Security == nil || len(*op.Security) == 0 {
		return nil, false
	}
	return (*op.Security)[0]["bearerAuth"], true
}

// Documents says whether the operation documents the status itself.
func (op *Operation) Documents(status int) bool { return op.response(status) != nil }

// response is what the operation documents for the status, not counting
// default.
func (op *Operation) response(status int) *openapi3.Response {
	if r := op.Responses.Value(fmt.Sprint(status)); r != nil {
		return r.Value
	}
	return nil
}

// operations lists all operations, those of one path together.
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

// find returns the operation of a request and its path parameters, or nil. A
// literal segment goes before a parameter.
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
