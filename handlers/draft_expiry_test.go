package handlers_test

import (
	"encoding/base64"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/approval"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// expirer returns what acts on the expired drafts of a server.
func (s *server) expirer(t *testing.T) *approval.Worker {
	t.Helper()
	w, err := approval.New(approval.Config{
		Store: s.store, API: s.service, Send: s.service.SendDue, Rules: handlers.DueRules(s.store, mailDomain, false), Now: s.clock.Now,
		Log: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	return w
}

func (s *server) expireDrafts(t *testing.T, want int) {
	t.Helper()
	if n, err := s.expirer(t).Decide(t.Context()); n != want || err != nil {
		t.Errorf("%d drafts were decided, error %v, want %d", n, err, want)
	}
}

// A draft is rejected or sent when it expires, not earlier, by the key that chose that.
func TestDraftExpires(t *testing.T) {
	s := serve(t, func(cfg *handlers.Config) { cfg.Undo = 10 * time.Second })
	in := s.newInbox(t, policy(store.PolicyApproval))
	body := strings.TrimSuffix(plainSend, "}") + `,"approval":{"expires_at":"` + after(time.Hour) + `"}}`
	agent := as(s.newKey(t, scopes("send", "read")))
	rejected, sent, edited, never := s.newDraft(t, in, body, agent), s.newDraft(t, in, body, agent), s.newDraft(t, in, body, agent), s.newDraft(t, in, plainSend, agent)
	rejected.wantAt(t, "expires_at", `"`+after(time.Hour)+`"`)
	rejected.wantAt(t, "on_expiry", `"reject"`)
	for _, d := range []response{sent, edited} {
		path := draftPath(t, d)
		s.do(t, http.MethodPatch, path, `{"on_expiry":"send"}`, agent).wantError(t, http.StatusForbidden, "insufficient_scope on_expiry")
		changed := s.do(t, http.MethodPatch, path, `{"on_expiry":"send"}`).want(t, http.StatusOK)
		changed.wantAt(t, "version", `2`)
		changed.wantAt(t, "on_expiry", `"send"`)
	}
	s.do(t, http.MethodPost, "/v1/inboxes/"+in.ID+"/messages", strings.TrimSuffix(plainSend, "}")+`,"approval":{"on_expiry":"send"}}`, agent).
		wantError(t, http.StatusForbidden, "insufficient_scope approval.on_expiry")
	s.do(t, http.MethodPatch, draftPath(t, never), `{"expires_at":"`+after(-time.Hour)+`"}`).wantError(t, http.StatusBadRequest, "invalid_request expires_at")
	s.do(t, http.MethodPatch, draftPath(t, edited), `{"text":"Other."}`, agent).want(t, http.StatusOK).wantAt(t, "on_expiry", `"reject"`)

	s.clock.Add(time.Hour - time.Millisecond)
	s.expireDrafts(t, 0)
	s.clock.Add(time.Millisecond)
	s.expireDrafts(t, 3)
	s.expireDrafts(t, 0)
	for _, d := range []response{rejected, edited} {
		got := s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK)
		got.wantAt(t, "status", `"rejected"`)
		got.wantAt(t, "reject_reason", `"expired"`)
		got.wantAt(t, "decided_by", `null`)
	}
	got := s.do(t, http.MethodGet, draftPath(t, sent), "").want(t, http.StatusOK)
	got.wantAt(t, "status", `"sent"`)
	if by := got.str(t, "decided_by"); !strings.HasPrefix(by, "key_") || by == got.str(t, "created_by") {
		t.Errorf("sent by %s", by)
	}
	s.do(t, http.MethodGet, draftPath(t, never), "").want(t, http.StatusOK).wantAt(t, "status", `"pending"`)
	if n := s.outbound(t); n != 1 {
		t.Errorf("%d messages were sent, want 1", n)
	}
	s.do(t, http.MethodPost, draftPath(t, sent, "/undo"), "").wantError(t, http.StatusConflict, "draft_not_pending")
	types := s.texts(t, `SELECT type FROM events WHERE type IN ('draft.sent', 'draft.rejected') ORDER BY seq`)
	if want := []string{"draft.rejected", "draft.sent", "draft.rejected"}; !slices.Equal(types, want) {
		t.Errorf("events %q, want %q", types, want)
	}
}

// A restored draft that is sent when it expires may have been sent since the backup: it
// waits for a decision.
func TestRestoredDraftIsNotSentByItself(t *testing.T) {
	s := serve(t)
	d := s.newDraft(t, s.newInbox(t, policy(store.PolicyApproval)), plainSend)
	s.do(t, http.MethodPatch, draftPath(t, d), `{"expires_at":"`+after(time.Hour)+`","on_expiry":"send"}`).want(t, http.StatusOK)
	must(t, s.store.Hold(t.Context()))
	s.clock.Add(2 * time.Hour)
	s.expireDrafts(t, 0)
	s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK).wantAt(t, "status", `"pending"`)
}

// A draft ends at a time or after a time, not both. The tools of MCP have both.
func TestExpiresIn(t *testing.T) {
	s := serve(t, withMCP)
	in := s.newInbox(t, policy(store.PolicyApproval))
	d := s.newDraft(t, in, `{"to":"ann@out.example","subject":"s","text":"t","approval":{"expires_in":60,"on_expiry":"reject"}}`)
	d.wantAt(t, "expires_at", `"`+after(time.Minute)+`"`)
	path := draftPath(t, d)
	s.do(t, http.MethodPatch, path, `{"expires_in":60,"expires_at":"`+after(time.Hour)+`"}`).wantError(t, http.StatusBadRequest, "invalid_request expires_in")
	s.do(t, http.MethodPatch, path, `{"expires_in":59}`, broken).want(t, http.StatusBadRequest)
	s.do(t, http.MethodPatch, path, `{"expires_in":null}`).want(t, http.StatusOK).wantAt(t, "expires_at", `null`)
	s.do(t, http.MethodPatch, path, `{"expires_in":2592000}`).want(t, http.StatusOK).wantAt(t, "expires_at", `"`+after(30*24*time.Hour)+`"`)
	m := s.receive(t, in, "From: ann@out.example\n\nHello\n")
	for tool, arguments := range map[string]string{
		"send_email": `"inbox_id":"` + in.ID + `","to":["ann@out.example"],"subject":"s"`, "reply": `"message_id":"` + m.ID + `"`,
		"forward": `"message_id":"` + m.ID + `","to":["ann@out.example"]`,
	} {
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{` + arguments + `,"text":"t","approval":{"expires_in":3600,"on_expiry":"reject"}}}}`
		s.do(t, http.MethodPost, "/mcp", call).want(t, http.StatusOK).wantText(t, `"expires_at":"`+after(time.Hour)+`"`)
	}
}

// Two nodes that act at once, while people approve and edit, decide each draft once.
func TestDraftExpiresOnce(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		nodes := startNodes(t, cfg, 2)
		s := nodes[0]
		in := s.newInbox(t, policy(store.PolicyApproval))
		const drafts = 40
		var paths []string
		for range drafts {
			d := s.newDraft(t, in, plainSend)
			s.do(t, http.MethodPatch, draftPath(t, d), `{"expires_at":"`+after(time.Hour)+`","on_expiry":"send"}`).want(t, http.StatusOK)
			paths = append(paths, draftPath(t, d))
		}
		s.clock.Add(time.Hour)
		var decided atomic.Int64
		var calls sync.WaitGroup
		for _, n := range []*server{s, nodes[len(nodes)-1]} {
			calls.Go(func() {
				did, err := n.expirer(t).Decide(t.Context())
				if err != nil {
					t.Error(err)
				}
				decided.Add(int64(did))
			})
		}
		calls.Go(func() {
			for _, path := range paths[drafts/2:] {
				if r := s.do(t, http.MethodPost, path+"/send", ""); r.status == http.StatusCreated {
					decided.Add(1)
				}
			}
		})
		calls.Wait()
		t.Logf("%d drafts, decided %d times, %d messages", drafts, decided.Load(), s.outbound(t))
		if n := s.outbound(t); n != drafts || decided.Load() != drafts {
			t.Errorf("%d decisions and %d messages of %d drafts", decided.Load(), n, drafts)
		}
	})
}

// A draft whose files are lost from the storage is rejected once, and says why.
func TestDraftWithLostFilesIsRejected(t *testing.T) {
	t.Parallel()
	eachRetained(t, func(t *testing.T, s retained) {
		in := s.newInbox(t, policy(store.PolicyApproval))
		large := base64.StdEncoding.EncodeToString(make([]byte, store.RawInRow+1))
		ends := s.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		d := s.newDraft(t, in, strings.TrimSuffix(plainSend, "}")+`,"attachments":[{"filename":"a.bin","content":"`+large+`"}],`+
			`"approval":{"expires_at":"`+ends+`","on_expiry":"send"}}`)
		if err := os.RemoveAll(s.blobs); err != nil {
			t.Fatal(err)
		}
		s.clock.Add(2 * time.Hour)
		s.expireDrafts(t, 1)
		s.expireDrafts(t, 0)
		got := s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK)
		got.wantAt(t, "status", `"rejected"`)
		got.wantText(t, "expired, and not sent: ")
		got.wantText(t, "damaged")
	})
}
