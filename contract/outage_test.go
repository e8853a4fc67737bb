package contract_test

import (
	"net/http"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

// theDatabaseIsGone shuts the program off from its database: every operation
// says so, and all is well again afterwards. SQLite is a file, which cannot be
// taken away, but one write can be kept waiting until the program gives up.
func theDatabaseIsGone(t *testing.T, w *world) {
	if w.gate == nil {
		release := w.holdWrites(t.Context(), t)
		defer release()
		w.send(t, w.call("createInbox").saying(`{}`)).wantUnavailable(t)
		w.send(t, w.call("listInboxes")).want(t, http.StatusOK) // reading goes on
		return
	}
	link := w.linkOf(t, w.in)
	w.gate.close()
	defer w.gate.open()
	w.send(t, w.call("getHealth").as("")).want(t, http.StatusServiceUnavailable)
	w.send(t, w.call("getOpenapi").as("")).want(t, http.StatusOK)
	w.send(t, w.call("downloadFile").as("").at(link)).wantUnavailable(t)
	w.eachKeyed(t, func(t *testing.T, op *contractcheck.Operation, _ []string) {
		c := call{op: op, path: w.pathWith(op, func(string) string { return "x" }), key: firstKey}
		if bodyOf(op) != nil {
			c.body = w.example(t, op, examples(op)[0])
		}
		w.send(t, c).wantUnavailable(t)
	})
	w.gate.open()
	w.send(t, w.call("listInboxes")).want(t, http.StatusOK)
	w.send(t, w.call("getHealth").as("")).want(t, http.StatusOK)
}

func (a answer) wantUnavailable(t *testing.T) {
	t.Helper()
	a.wantCode(t, http.StatusServiceUnavailable, "unavailable")
	if a.header.Get("Retry-After") == "" {
		t.Errorf("%s: no Retry-After", a.call)
	}
}
