package contract_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// whatIsNotInTheContract checks that unknown paths and methods get the usual
// error body.
func whatIsNotInTheContract(t *testing.T, w *world) {
	for _, path := range []string{"/v1", "/v1/inboxes/", "/v2/inboxes", "//v1/inboxes", "/v1/inboxes/x/y/z", "/metrics"} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req := w.request(t.Context(), t, w.call("listInboxes").at(path))
			req.Method = method
			if a := w.sendRequest(t, req); a.status != http.StatusNotFound && a.status != http.StatusMethodNotAllowed {
				t.Errorf("%s: %d %s", a.call, a.status, a.body)
			}
		}
	}
	for _, op := range w.check.Operations() {
		req := w.request(t.Context(), t, call{op: op, path: w.pathWith(op, func(string) string { return "x" }), key: firstKey})
		req.Method = http.MethodTrace
		a := w.sendRequest(t, req).wantCode(t, http.StatusMethodNotAllowed, "method_not_allowed")
		if allow := a.header.Get("Allow"); !strings.Contains(allow, op.Method) {
			t.Errorf("%s: Allow %q lacks %s", a.call, allow, op.Method)
		}
	}
}

// theContractItself checks that the served contract is the tested one.
func theContractItself(t *testing.T, w *world) {
	a := w.send(t, w.call("getOpenapi").as("")).want(t, http.StatusOK)
	if strings.Contains(string(a.body), "x-ogen") {
		t.Error("the served contract has x-ogen-...")
	}
	doc, err := openapi3.NewLoader().LoadFromData(a.body)
	must(t, err)
	must(t, doc.Validate(t.Context()))
	for _, op := range w.check.Operations() {
		if item := doc.Paths.Value(op.Path); item == nil || item.GetOperation(op.Method) == nil ||
			item.GetOperation(op.Method).OperationID != op.OperationID {
			t.Errorf("the served contract lacks %s", op.OperationID)
		}
	}
}
