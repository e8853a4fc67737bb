package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// scopes are all scopes of keys.
var scopes = []string{
	"admin", "send", "read", "codes:read", "emails:send", "emails:read", "contacts:write", "contacts:read", "templates:write",
	"templates:read", "domains:write", "domains:read", "webhooks:manage", "keys:manage",
}

// operation is an operation and its location.
type operation struct {
	*openapi3.Operation
	name, path, method string
	shared             openapi3.Parameters
}

// contractOperations returns every operation under paths, sorted by path.
func contractOperations(t *testing.T) []operation {
	t.Helper()
	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	var ops []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			ops = append(ops, operation{op, method + " " + path, path, method, item.Parameters})
		}
	}
	slices.SortFunc(ops, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return ops
}

// Each operation has a name, a group, scopes, examples, and all responses that
// its shape implies.
func TestOperations(t *testing.T) {
	t.Parallel()

	seen := map[string]bool{}
	for _, op := range contractOperations(t) {
		if op.OperationID == "" || seen[op.OperationID] {
			t.Errorf("%s: operationId %q is empty or taken", op.name, op.OperationID)
		}
		seen[op.OperationID] = true
		for _, fault := range slices.Concat(op.scopeFaults(), op.exampleFaults(), op.responseFaults()) {
			t.Errorf("%s: %s", op.name, fault)
		}
	}
	if len(seen) == 0 {
		t.Error("no operations found")
	}
}

// roles returns the scopes of the operation. A key needs one of them. ok is false if
// no key is needed.
func (op operation) roles() (roles []string, ok bool) {
	if op.Security == nil || len(*op.Security) == 0 {
		return nil, false
	}
	return (*op.Security)[0]["bearerAuth"], true
}

func (op operation) scopeFaults() (faults []string) {
	if op.Security == nil {
		return []string{"no security, not even an empty one"}
	}
	roles, keyed := op.roles()
	for _, r := range roles {
		if !slices.Contains(scopes, r) {
			faults = append(faults, "unknown scope "+r)
		}
		if area, ok := strings.CutSuffix(r, ":read"); ok && area != "emails" && area != "codes" && !slices.Contains(roles, area+":write") {
			faults = append(faults, r+" without "+area+":write, which implies it")
		}
		if r == "emails:send" && !slices.Contains(roles, "send") || strings.HasSuffix(r, ":read") && !slices.Contains(roles, "read") {
			faults = append(faults, r+" without the scope that includes it")
		}
	}
	if keyed && op.OperationID != "callMcp" && !slices.Contains(roles, "admin") {
		faults = append(faults, "closed to admin")
	}
	return faults
}

func (op operation) exampleFaults() (faults []string) {
	if op.RequestBody != nil {
		if media := op.RequestBody.Value.Content["application/json"]; media == nil || len(media.Examples) == 0 {
			faults = append(faults, "the body has no example")
		}
	}
	for status, r := range op.Responses.Map() {
		if status[0] != '2' {
			continue
		}
		for kind, media := range r.Value.Content {
			if media.Example == nil && len(media.Examples) == 0 {
				faults = append(faults, status+" has no example of "+kind)
			}
		}
	}
	return faults
}

func (op operation) responseFaults() (faults []string) {
	need := map[string]bool{"default": true}
	_, keyed := op.roles()
	body := op.RequestBody != nil
	replayable := op.has("header", "Idempotency-Key")
	for _, status := range []string{"401", "403", "429", "503"} {
		need[status] = keyed
	}
	need["400"] = body || op.hasAny("query")
	need["404"] = op.hasAny("path")
	need["413"], need["415"] = body, body
	if replayable {
		need["409"], need["422"] = true, true
	}
	for status, must := range need {
		if must && op.Responses.Value(status) == nil {
			faults = append(faults, "does not document "+status)
		}
	}
	for status, r := range op.Responses.Map() {
		if r.Value.Extensions["x-redirected"] != nil {
			continue // the response of another operation
		}
		h := r.Value.Headers
		if h["X-Request-Id"] == nil {
			faults = append(faults, status+" lacks X-Request-Id")
		}
		if status[0] == '2' && (h["RateLimit-Reset"] != nil) != keyed {
			faults = append(faults, status+": rate limit headers go with keys")
		}
		if status[0] == '2' && (h["Idempotent-Replayed"] != nil) != replayable {
			faults = append(faults, status+": Idempotent-Replayed goes with Idempotency-Key")
		}
	}
	return faults
}

func (op operation) has(in, name string) bool {
	return op.Parameters.GetByInAndName(in, name) != nil || op.shared.GetByInAndName(in, name) != nil
}

func (op operation) hasAny(in string) bool {
	return slices.ContainsFunc(slices.Concat(op.Parameters, op.shared), func(p *openapi3.ParameterRef) bool {
		return p.Value.In == in
	})
}
