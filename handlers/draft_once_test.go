package handlers_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Row H13 for drafts: of many equal concurrent calls one creates the draft, one
// sends it and one rejects it. The others get the same response or are asked to
// retry. On PostgreSQL they use two nodes.
func TestManyDraftCallsAtOnceHaveOneEffect(t *testing.T) {
	t.Parallel()
	const calls = 50
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		nodes := startNodes(t, cfg, 2)
		s := nodes[0]
		in := s.newInbox(t, policy(store.PolicyApproval))
		for round := range onceRounds {
			key := with(idempotencyKey, fmt.Sprint(round))
			path := "/v1/inboxes/" + in.ID + "/messages"
			for range 2 { // one to send and one to reject with the second key
				equalAtOnce(t, nodes, calls, path, plainSend, http.StatusAccepted, key)
				key = with(idempotencyKey, fmt.Sprint(round, " again"))
			}
			drafts := s.pages(t, "/v1/inboxes/"+in.ID+"/drafts?status=pending")
			if len(drafts) != 2 {
				t.Fatalf("%d drafts, want 2", len(drafts))
			}
			equalAtOnce(t, nodes, calls, "/v1/drafts/"+drafts[0]+"/send", `{}`, http.StatusCreated, key)
			equalAtOnce(t, nodes, calls, "/v1/drafts/"+drafts[1]+"/reject", `{}`, http.StatusOK, key)
		}
		for what, want := range map[string]int{"draft.created": 2, "draft.pending": 2, "draft.sent": 1, "draft.rejected": 1, "message.queued": 1} {
			if n := len(s.texts(t, `SELECT id FROM events WHERE type = $1`, what)); n != want*onceRounds {
				t.Errorf("%d events %s, want %d", n, what, want*onceRounds)
			}
		}
	})
}

// equalAtOnce makes n equal calls with one idempotency key, using the nodes in
// turn. All successful responses are equal, and one of them is the original.
func equalAtOnce(t *testing.T, nodes []*server, n int, path, body string, status int, key option) {
	t.Helper()
	responses := make([]response, n)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() { responses[i] = nodes[i%len(nodes)].do(t, http.MethodPost, path, body, key) })
	}
	calls.Wait()
	last := nodes[0].do(t, http.MethodPost, path, body, key).want(t, status)
	firsts := 0
	for _, a := range responses {
		switch {
		case a.status == http.StatusConflict && strings.Contains(string(a.body), "idempotency_in_progress") && a.header.Get("Retry-After") == "1":
		case a.want(t, status).header.Get("Idempotent-Replayed") == "":
			firsts++
			fallthrough
		default:
			a.wantSame(t, last)
		}
	}
	if firsts != 1 {
		t.Errorf("%s: %d calls had an effect", path, firsts)
	}
}
