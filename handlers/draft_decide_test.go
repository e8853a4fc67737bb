package handlers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
)

// keyID returns the id of the key with this secret.
func (s *server) keyID(t *testing.T, secret string) string {
	t.Helper()
	k, err := s.store.KeyByHash(t.Context(), store.HashKey(secret))
	must(t, err)
	return k.ID
}

func TestSendDraft(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	author, admin := s.newKey(t, scopes("send")), s.newKey(t, scopes("admin"))
	d := s.newDraft(t, in, plainSend, as(author))
	s.clock.Add(time.Minute)
	queue := s.store.WakeQueue()
	defer queue.Stop()
	m := s.do(t, http.MethodPost, draftPath(t, d, "/send"), "", as(admin)).want(t, http.StatusCreated)
	select {
	case <-queue.C:
	default:
		t.Error("the queue was not woken")
	}
	m.wantAt(t, "status", `"queued"`)
	m.wantAt(t, "recipients.0.email", `"ann@out.example"`)
	got := s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK)
	for path, want := range map[string]string{
		"status": `"sent"`, "message_id": `"` + m.str(t, "id") + `"`, "thread_id": `"` + m.str(t, "thread_id") + `"`, "version": `1`,
		"created_by": `"` + s.keyID(t, author) + `"`, "decided_by": `"` + s.keyID(t, admin) + `"`,
		"decided_at": `"` + after(time.Minute) + `"`, "updated_at": `"` + after(time.Minute) + `"`,
		"reject_reason": `null`, "text": `"Please."`,
	} {
		got.wantAt(t, path, want)
	}
	for _, call := range []struct{ method, what, body string }{
		{http.MethodPost, "/send", ``},
		{http.MethodPost, "/send", `{"version":1}`},
		{http.MethodPost, "/send", `{"version":2}`},
		{http.MethodPost, "/reject", ``},
		{http.MethodPatch, "", `{"text":"t"}`},
	} {
		s.do(t, call.method, draftPath(t, d, call.what), call.body).wantError(t, http.StatusConflict, "draft_not_pending")
	}
	if n := s.outbound(t); n != 1 {
		t.Errorf("%d messages were sent", n)
	}
}

// Every change of a draft creates an event. A repeated call changes nothing.
func TestDraftEventsAndRepeats(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	key := with(idempotencyKey, "k")
	again := func(path, body string, status int) response {
		t.Helper()
		first := s.do(t, http.MethodPost, path, body, key).want(t, status)
		second := s.do(t, http.MethodPost, path, body, key).want(t, status)
		second.wantSame(t, first)
		if second.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: a repeat is not marked as one", path)
		}
		return first
	}
	one := again("/v1/inboxes/"+in.ID+"/messages", plainSend, http.StatusAccepted)
	two := s.newDraft(t, in, plainSend)
	s.do(t, http.MethodPatch, draftPath(t, one), `{"text":"t"}`).want(t, http.StatusOK)
	again(draftPath(t, one, "/send"), `{}`, http.StatusCreated)
	rejected := again(draftPath(t, two, "/reject"), `{"reason":"No."}`, http.StatusOK)
	rejected.says(t, "status", `"rejected"`).says(t, "reject_reason", `"No."`).wantAt(t, "decided_by", `"`+s.keyID(t, s.key)+`"`)
	s.do(t, http.MethodPost, draftPath(t, two, "/reject"), `{"reason":"Never."}`, key).
		wantError(t, http.StatusUnprocessableEntity, "idempotency_key_reused "+idempotencyKey)

	want := []string{
		`draft.created {"draft_id":"` + one.str(t, "id") + `","status":"pending"}`,
		`draft.pending {"draft_id":"` + one.str(t, "id") + `","status":"pending"}`,
		`draft.created {"draft_id":"` + two.str(t, "id") + `","status":"pending"}`,
		`draft.pending {"draft_id":"` + two.str(t, "id") + `","status":"pending"}`,
		`draft.pending {"draft_id":"` + one.str(t, "id") + `","status":"pending"}`, // edited
		`message.queued {"status":"queued"}`,
		`draft.sent {"draft_id":"` + one.str(t, "id") + `","status":"sent"}`,
		`draft.rejected {"draft_id":"` + two.str(t, "id") + `","status":"rejected"}`,
	}
	if d := cmp.Diff(want, s.texts(t, `SELECT type || ' ' || data FROM events ORDER BY seq`)); d != "" {
		t.Errorf("events: -want +got:\n%s", d)
	}
	if n := s.outbound(t); n != 1 {
		t.Errorf("%d messages were sent", n)
	}
}

// Nobody sent a simulated message, so no live message answers it or forwards it, by any
// way to send. What a test key sends is simulated too.
func TestSimulatedMessagesAreNotAnsweredLive(t *testing.T) {
	s := serve(t, withMCP)
	for _, p := range []store.SendPolicy{store.PolicyOpen, store.PolicyReplyOnly, store.PolicyApproval} {
		in := s.newInbox(t)
		test, live := as(s.newKey(t, func(k *store.Key) { k.Mode = store.KeyTest })), s.newKey(t, scopes("read", "send"), onlyInboxes(in.ID))
		real := s.receive(t, in, "From: ceo@corp.example\nMessage-ID: <real@corp.example>\nSubject: Hi")
		made := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/simulate", `{"raw":"From: CEO Jane <ceo@corp.example>\nMessage-ID: <fake@corp.example>\nSubject: Go\n\nApproved by me."}`, as(live)).
			want(t, http.StatusCreated)
		out := s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", `{"to":"ceo@corp.example","subject":"s","text":"t"}`, test).want(t, http.StatusCreated)
		s.setPolicy(t, in, p)
		for _, source := range []string{made.str(t, "id"), out.str(t, "id")} {
			for call, body := range map[string]string{"/reply": `{"text":"t","cc":["ceo@corp.example"]}`, "/forward": `{"to":"ceo@corp.example"}`} {
				path := "/v1/messages/" + source + call
				s.do(t, http.MethodPost, path, body, as(live)).wantError(t, http.StatusConflict, "test_mode_mismatch message_id")
				s.do(t, http.MethodPost, path, body, as(s.key)).wantError(t, http.StatusConflict, "test_mode_mismatch message_id")
				if res := s.do(t, http.MethodPost, path, body, test); res.status != http.StatusCreated && res.status != http.StatusAccepted {
					t.Errorf("%s by a test key: %d %s", call, res.status, res.body)
				}
			}
			for tool, more := range map[string]string{"reply": `"text":"t"`, "forward": `"to":["ceo@corp.example"]`} {
				if done, err := s.callTool(t.Context(), t, live, tool, `{"message_id":"`+source+`",`+more+`}`); err != nil || done != "test_mode_mismatch" {
					t.Errorf("MCP %s: %s, %v", tool, done, err)
				}
			}
		}
		letter := "From: " + in.Address + "\nTo: ceo@corp.example\nSubject: s\n"
		for _, header := range []string{
			"In-Reply-To: <fake@corp.example>\n", "References: <real@corp.example> <fake@corp.example>\n", "in-reply-to: x <fake@corp.example>\n",
			"In-Reply-To: " + out.str(t, "rfc_message_id") + "\n", "In-Reply-To: <fake@corp.example>\nX-Postroom-Tag: a=b\n",
		} {
			s.refuses(t, live, letter+header, "test_mode_mismatch", "ceo@corp.example")
		}
		s.submits(t, live, letter+"In-Reply-To: <real@corp.example>\n", "ceo@corp.example")
		// A real message with the same Message-ID is what the header means.
		s.receive(t, in, "From: ceo@corp.example\nMessage-ID: <fake@corp.example>\nSubject: Hi")
		s.submits(t, live, letter+"In-Reply-To: <fake@corp.example>\n", "ceo@corp.example")
		s.do(t, http.MethodPost, "/v1/messages/"+real.ID+"/reply", `{"text":"t"}`, as(live))
		for _, to := range s.texts(t, `SELECT m.subject FROM messages m WHERE m.inbox_seq = $1 AND m.direction = 'out' AND NOT m.test_mode`, in.Seq) {
			if to == "Re: Go" || to == "Fwd: Go" {
				t.Errorf("%q was sent", to)
			}
		}
	}
}

// TestTestKeysLeaveLiveDraftsAlone edits, sends and rejects live drafts with a test
// key, and test drafts with both kinds of keys.
func TestTestKeysLeaveLiveDraftsAlone(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, policy(store.PolicyApproval))
	test := as(s.newKey(t, func(k *store.Key) { k.Mode = store.KeyTest }))
	live := s.newDraft(t, in, plainSend)
	before := s.do(t, http.MethodGet, draftPath(t, live), "").want(t, http.StatusOK)
	for _, call := range []struct{ method, what, body string }{
		{http.MethodPost, "/send", ``},
		{http.MethodPost, "/send", `{"version":1}`},
		{http.MethodPost, "/reject", `{"reason":"no"}`},
		{http.MethodPatch, "", `{"text":"Something else."}`},
	} {
		s.do(t, call.method, draftPath(t, live, call.what), call.body, test).wantError(t, http.StatusConflict, "test_mode_mismatch")
	}
	before.wantSame(t, s.do(t, http.MethodGet, draftPath(t, live), "", test).want(t, http.StatusOK))
	s.do(t, http.MethodPost, draftPath(t, live, "/send"), "").want(t, http.StatusCreated).wantAt(t, "test_mode", `false`)

	for _, decide := range []option{test, as(s.key)} {
		simulated := s.newDraft(t, in, plainSend, test)
		s.do(t, http.MethodPatch, draftPath(t, simulated), `{"text":"t"}`, decide).want(t, http.StatusOK)
		s.do(t, http.MethodPost, draftPath(t, simulated, "/send"), "", decide).want(t, http.StatusCreated).wantAt(t, "test_mode", `true`)
	}
}
