package contract_test

import (
	"net/http"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

// theDatabaseIsGone disconnects the database: every operation reports that, and
// all work again afterwards. SQLite has no connection: internal/faults fills its disk.
func theDatabaseIsGone(t *testing.T, w *world) {
	if w.gate == nil {
		t.Skip("SQLite has no connection")
	}
	link := w.linkOf(t, w.in)
	unused := w.newKey(t, "").Key // on SQLite, used keys are remembered for a second
	w.gate.close()
	w.send(t, w.call("getHealth").as("")).want(t, http.StatusServiceUnavailable)
	w.send(t, w.call("getOpenapi").as("")).want(t, http.StatusOK)
	w.send(t, w.call("downloadFile").as("").at(link)).wantUnavailable(t)
	w.eachKeyed(t, func(t *testing.T, op *contractcheck.Operation, _ []string) {
		c := call{op: op, path: w.pathWith(op, func(string) string { return "x" }), key: unused}
		if bodyOf(op) != nil {
			c.body = w.example(t, op, examples(op)[0])
		}
		w.send(t, c).wantUnavailable(t)
	})
	w.gate.open()
	w.send(t, w.call("getHealth").as("")).want(t, http.StatusOK)
	w.send(t, w.call("createInbox").saying(`{}`)).want(t, http.StatusCreated)
	w.send(t, w.call("listInboxes")).want(t, http.StatusOK)
}

func (a response) wantUnavailable(t *testing.T) {
	t.Helper()
	a.wantCode(t, http.StatusServiceUnavailable, "unavailable")
	if a.header.Get("Retry-After") == "" {
		t.Errorf("%s: no Retry-After", a.call)
	}
}
