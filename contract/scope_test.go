package contract_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

// opened maps each scope to the other scopes that it includes, as documented.
// "*" and "admin" include all.
var opened = map[string][]string{
	"send": {"emails:send"}, "read": {"codes:read", "emails:read", "contacts:read", "templates:read", "domains:read"},
	"codes:read": nil, "emails:send": nil, "emails:read": nil,
	"contacts:write": {"contacts:read"}, "contacts:read": nil,
	"templates:write": {"templates:read"}, "templates:read": nil,
	"domains:write": {"domains:read"}, "domains:read": nil,
	"webhooks:manage": nil, "keys:manage": nil,
}

// opens reports whether a key with only that scope may call an operation that
// requires one of wanted.
func opens(scope string, wanted []string) bool {
	return len(wanted) == 0 || scope == "*" || scope == "admin" || slices.Contains(wanted, scope) ||
		slices.ContainsFunc(opened[scope], func(s string) bool { return slices.Contains(wanted, s) })
}

// scopeMatrix (H12) calls each operation with keys of each scope and mode. The
// response is 403 insufficient_scope exactly where the table says so. The calls
// have unknown ids and invalid bodies, so that they have no effect.
func scopeMatrix(t *testing.T, w *world) {
	scopes := []string{"*", "admin"}
	for scope := range opened {
		scopes = append(scopes, scope)
	}
	modes := []string{"live", "test", "restricted"}
	keys := map[string]string{}
	for _, scope := range scopes {
		for _, mode := range modes {
			keys[scope+mode] = w.newKey(t, fmt.Sprintf(`"mode":%q,"scopes":[%q]`, mode, scope)).Key
		}
	}
	w.eachKeyed(t, func(t *testing.T, op *contractcheck.Operation, wanted []string) {
		c := w.vain(op)
		for _, scope := range scopes {
			for _, mode := range modes {
				c, allowed := c, opens(scope, wanted)
				if scope == "codes:read" && op.Parameters.GetByInAndName("query", "view") != nil { // only in the view of codes
					w.send(t, c.as(keys[scope+mode])).wantCode(t, http.StatusForbidden, "insufficient_scope")
					c = c.asking("view", "code")
				}
				a := w.send(t, c.as(keys[scope+mode]))
				switch refused := a.status == http.StatusForbidden; {
				case refused == allowed:
					t.Errorf("%s with a %s key of scope %s: %d %s, and the table allows it: %t", a.call, mode, scope, a.status, a.body, allowed)
				case refused && (a.code() != "insufficient_scope" || !strings.Contains(a.fault().Error.Message, wanted[0])):
					t.Errorf("%s with scope %s: the response does not name the scope %s: %s", a.call, scope, wanted[0], a.body)
				}
			}
		}
	})
}

// vain returns a call of the operation that has no effect even if it is
// allowed: its ids are unknown, its body is not JSON, and its lists belong to
// another account.
func (w *world) vain(op *contractcheck.Operation) call {
	c := call{op: op, path: w.pathWith(op, func(string) string { return "x_01k5tt9h8yq4n0c3m2v7w6x5zd" })}.breaking()
	if bodyOf(op) != nil {
		c = c.saying(`{`)
	}
	if op.Parameters.GetByInAndName("query", "inbox_id") != nil {
		c = c.asking("inbox_id", "ibx_01k5tt9h8yq4n0c3m2v7w6x5zd")
	}
	return c
}

// boundKeyMatrix calls each operation with a key bound to one inbox and
// compares the status with x-inbox-ids of the operation.
func boundKeyMatrix(t *testing.T, w *world) {
	bound := w.newKey(t, `"inbox_ids":["`+w.newInbox(t).ID+`"]`).Key
	w.eachKeyed(t, func(t *testing.T, op *contractcheck.Operation, _ []string) {
		rule, _ := op.Extensions["x-inbox-ids"].(string)
		a := w.send(t, w.vain(op).as(bound))
		if refused := a.code() == "insufficient_scope"; refused != (rule == "refused") {
			t.Errorf("%s: %d %s, and x-inbox-ids is %q", a.call, a.status, a.body, rule)
		}
		switch {
		case rule == "named":
			w.send(t, call{op: op, path: op.Path, key: bound}).wantCode(t, http.StatusForbidden, "insufficient_scope")
		case rule == "subset" && len(named(op)) > 0:
			w.send(t, w.target(t, op).as("of the account", bound).call(t, w, op)).wantCode(t, http.StatusForbidden, "insufficient_scope")
		}
	})
}
