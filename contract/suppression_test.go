package contract_test

import (
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
)

var suppressionCount atomic.Int64

// newSuppression adds a suppression and returns its address.
func (w *world) newSuppression(t *testing.T) string {
	t.Helper()
	email := fmt.Sprintf("gone%d@example.net", suppressionCount.Add(1))
	w.send(t, w.call("createSuppression").saying(`{"email":"`+email+`"}`)).want(t, http.StatusCreated)
	return email
}

// suppressions checks that suppressed recipients get no mail, in any way to
// send it.
func suppressions(t *testing.T, w *world) {
	in, gone := w.newInbox(t), w.newSuppression(t)
	for name, c := range w.waysToSend(in, w.receive(t, in), gone) {
		a := w.send(t, c)
		if name == "reply" { // also goes to the sender
			m := read[struct {
				Recipients []struct{ Email, Status string }
			}](t, a.want(t, http.StatusCreated))
			if n := len(m.Recipients); n != 2 || m.Recipients[0].Status == "suppressed" || m.Recipients[1].Status != "suppressed" {
				t.Errorf("the recipients of a reply: %+v", m.Recipients)
			}
			continue
		}
		a.wantCode(t, http.StatusUnprocessableEntity, "recipient_suppressed")
	}
	send := w.call("sendMessage").at("/v1/inboxes/" + in.ID + "/messages").saying(`{"to":"` + gone + `","subject":"s","text":"t"}`)
	w.send(t, w.call("deleteSuppression").at("/v1/suppressions/"+url.PathEscape("GONE"+gone[len("gone"):]))).want(t, http.StatusOK)
	w.send(t, send).want(t, http.StatusCreated)
	w.send(t, w.call("createSuppression").saying(`{"email":"`+gone+`","category":"marketing"}`)).want(t, http.StatusCreated)
	w.send(t, send).want(t, http.StatusCreated) // is not marketing
}
