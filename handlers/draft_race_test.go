package handlers_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Of two concurrent decisions about a draft one wins, and the other gets an
// error. On PostgreSQL they use two nodes.
func TestDecisionsRace(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		nodes := startNodes(t, cfg, 2)
		s, other := nodes[0], nodes[len(nodes)-1]
		in := s.newInbox(t, policy(store.PolicyApproval))
		// both makes two concurrent calls about a new draft, the second one to
		// the other node.
		both := func(first, second [2]string) (d, a, b response) {
			d = s.newDraft(t, in, plainSend)
			var calls sync.WaitGroup
			calls.Go(func() { a = s.do(t, first[0], draftPath(t, d)+first[1], "{}") })
			body := "{}"
			if second[0] == http.MethodPatch {
				body = `{"text":"Edited."}`
			}
			calls.Go(func() { b = other.do(t, second[0], draftPath(t, d)+second[1], body) })
			calls.Wait()
			return s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK), a, b
		}
		send, reject, edit := [2]string{http.MethodPost, "/send"}, [2]string{http.MethodPost, "/reject"}, [2]string{http.MethodPatch, ""}
		sent, rejected, changed := 0, 0, 0
		for range decisionRounds {
			d, a, b := both(send, send)
			oneOf(t, a, http.StatusCreated, b, http.StatusCreated)
			d.wantAt(t, "status", `"sent"`)
			sent++

			d, a, b = both(send, reject)
			oneOf(t, a, http.StatusCreated, b, http.StatusOK)
			if a.status == http.StatusCreated {
				d.wantAt(t, "status", `"sent"`)
				sent++
			} else {
				d.wantAt(t, "status", `"rejected"`)
				rejected++
			}

			d, a, b = both(send, edit)
			if sentAndEdited(t, d, a, b) {
				sent++
			} else {
				changed++
			}
		}
		t.Logf("%d sent, %d rejected, %d edited while they were being sent", sent, rejected, changed)
		if n := len(s.texts(t, `SELECT id FROM messages WHERE direction = 'out'`)); n != sent {
			t.Errorf("%d messages were sent, but %d calls succeeded", n, sent)
		}
	})
}

// oneOf fails the test unless one call succeeded and the other was refused as
// too late.
func oneOf(t *testing.T, a response, done int, b response, alsoDone int) {
	t.Helper()
	if a.status == done {
		a, b, alsoDone = b, a, done
	}
	b.want(t, alsoDone)
	a.wantError(t, http.StatusConflict, "draft_not_pending")
}

// sentAndEdited fails the test unless the send and the edit ran one after the
// other or one of them was refused. It reports whether the message was sent.
func sentAndEdited(t *testing.T, d, send, edit response) bool {
	t.Helper()
	switch {
	case send.status == http.StatusCreated && edit.status == http.StatusOK:
		send.wantAt(t, "text", `"Edited."`) // the edit came first
		d.wantAt(t, "version", `2`)
	case send.status == http.StatusCreated:
		edit.wantError(t, http.StatusConflict, "draft_not_pending")
		send.wantAt(t, "text", `"Please."`)
		d.wantAt(t, "version", `1`)
		d.wantAt(t, "text", `"Please."`)
	default:
		edit.want(t, http.StatusOK)
		send.wantError(t, http.StatusConflict, "draft_changed")
		d.wantAt(t, "status", `"pending"`)
		d.wantAt(t, "version", `2`)
	}
	return send.status == http.StatusCreated
}
