package contract_test

import (
	"net/http"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

// theDatabaseIsGone disconnects the database: every operation reports that, and
// all work again afterwards.
func theDatabaseIsGone(t *testing.T, w *world) {
	link := w.linkOf(t, w.in)
	unused := w.newKey(t, "").Key // on SQLite, used keys are remembered for a second
	restore := w.takeDatabase(t)
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
	restore()
	w.send(t, w.call("getHealth").as("")).want(t, http.StatusOK)
	w.send(t, w.call("createInbox").saying(`{}`)).want(t, http.StatusCreated)
	w.send(t, w.call("listInboxes")).want(t, http.StatusOK)
}

// takeDatabase makes the database of the running program fail until restore is
// called or the test ends.
func (in *install) takeDatabase(t *testing.T) (restore func()) {
	t.Helper()
	if in.gate == nil {
		return in.tearLog(t)
	}
	in.gate.close()
	t.Cleanup(in.gate.open)
	return in.gate.open
}

func (a response) wantUnavailable(t *testing.T) {
	t.Helper()
	a.wantCode(t, http.StatusServiceUnavailable, "unavailable")
	if a.header.Get("Retry-After") == "" {
		t.Errorf("%s: no Retry-After", a.call)
	}
}
