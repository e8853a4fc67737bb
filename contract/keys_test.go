package contract_test

import (
	"net/http"
	"path"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

// eachKeyed runs test for every operation that requires a key.
func (w *world) eachKeyed(t *testing.T, test func(t *testing.T, op *contractcheck.Operation, scopes []string)) {
	t.Helper()
	w.eachOperation(t, func(t *testing.T, op *contractcheck.Operation) {
		if scopes, keyed := op.Scopes(); keyed {
			test(t, op, scopes)
		}
	})
}

func everyOperationWantsAKey(t *testing.T, w *world) {
	revoked := w.newKey(t, "")
	w.send(t, w.call("deleteKey").at("/v1/keys/"+revoked.ID)).want(t, http.StatusOK)
	w.eachKeyed(t, func(t *testing.T, op *contractcheck.Operation, _ []string) {
		c := w.good(t, op)
		refused := map[string]call{
			"no key":        c.as(""),
			"an empty one":  c.as("").with("Authorization", "Bearer "),
			"another way":   c.as("").with("Authorization", "Basic YTpi"),
			"a wrong key":   c.as(firstKey + "x"),
			"a revoked one": c.as(revoked.Key),
		}
		for name, c := range refused {
			a := w.send(t, c).wantCode(t, http.StatusUnauthorized, "unauthorized")
			if a.header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s: WWW-Authenticate %q", name, a.header.Get("WWW-Authenticate"))
			}
		}
		if c.body != nil { // the key is checked first
			w.send(t, c.as("").saying(`{`).breaking()).wantCode(t, http.StatusUnauthorized, "unauthorized")
		}
	})
}

// everyOperationWantsItsScope calls each operation with a key for each sufficient scope.
// scopeMatrix has those that do not suffice.
func everyOperationWantsItsScope(t *testing.T, w *world) {
	keys := map[string]string{}
	for _, scope := range []string{
		"read", "send", "admin", "codes:read", "emails:send", "emails:read", "contacts:write", "contacts:read", "templates:write",
		"templates:read", "domains:write", "domains:read", "webhooks:manage", "keys:manage",
	} {
		keys[scope] = w.scoped(t, scope).Key
	}
	w.eachKeyed(t, func(t *testing.T, op *contractcheck.Operation, scopes []string) {
		for _, scope := range scopes {
			if keys[scope] == "" {
				t.Fatalf("this test does not know the scope %q", scope)
			}
			c := w.good(t, op).as(keys[scope])
			if op.OperationID == "createKey" || op.OperationID == "createApiKey" {
				c = c.saying(`{"name":"narrower","scopes":["` + scope + `"]}`) // than the creating key
			}
			if op.OperationID == "createWebhook" && scope != "admin" {
				c = c.saying(quietWebhook(w.receiver)) // others need a scope that reads them
			}
			if op.OperationID == "rotateWebhookSecret" && scope != "admin" {
				w.hook = w.newWebhookOf(t, keys[scope], quietWebhook(w.receiver)).ID // that of firstKey needs admin
				c = c.at("/v1/webhooks/" + w.hook + "/rotate-secret")
			}
			if scope == "keys:manage" && (op.Path == "/v1/keys/{id}" || op.Path == "/v1/api-keys/{api_key_id}") {
				c = c.at(path.Dir(op.Path) + "/" + w.scoped(t, scope).ID) // not a key that may do more
			}
			if scope == "codes:read" {
				c = c.asking("view", "code") // all that this scope permits
			}
			w.send(t, c).wantDone(t)
		}
	})
}

func keysAreForTheirAddresses(t *testing.T, w *world) {
	elsewhere, here := w.newKey(t, `"allowed_ips":["203.0.113.0/24"]`), w.newKey(t, `"allowed_ips":["127.0.0.0/8"]`)
	w.eachKeyed(t, func(t *testing.T, op *contractcheck.Operation, _ []string) {
		c := w.good(t, op)
		w.send(t, c.as(elsewhere.Key)).wantCode(t, http.StatusForbidden, "ip_not_allowed")
		if op.OperationID == "createKey" || op.OperationID == "createApiKey" {
			c = c.saying(`{"name":"narrower","allowed_ips":["127.0.0.1/32"]}`) // than the creating key
		}
		w.send(t, c.as(here.Key)).wantDone(t)
	})
}
