package handlers_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// The message of a draft that a key approves leaves at once. The approval of a person can
// be undone for 10 seconds: the message does not leave before, and after an undo the draft
// can be edited and approved again.
func TestUndoApproval(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t, policy(store.PolicyApproval))
		due := func() int {
			claimed, err := s.store.ClaimRecipients(t.Context(), 10, time.Minute, nil)
			if err != nil {
				t.Fatal(err)
			}
			return len(claimed)
		}
		api, err := httpapi.NewLocalClient(s.web.Config.Handler)
		if err != nil {
			t.Fatal(err)
		}
		approve := func(d response) string {
			t.Helper()
			person := httpapi.AsPerson(t.Context(), httpapi.Person{Seq: 1, AccountID: s.account, ID: "usr_1", Role: store.RoleApprover})
			m, err := api.SendDraft(person, gen.OptDraftSend{}, gen.SendDraftParams{DraftID: d.str(t, "id")})
			if err != nil {
				t.Fatal(err)
			}
			return m.ID
		}
		byKey := s.newDraft(t, in, plainSend)
		s.do(t, http.MethodPost, draftPath(t, byKey, "/send"), "").want(t, http.StatusCreated)
		if n := due(); n != 1 {
			t.Errorf("%d recipients are due after an approval by a key, want 1", n)
		}
		s.do(t, http.MethodPost, draftPath(t, byKey, "/undo"), "").wantError(t, http.StatusConflict, "draft_not_pending")

		d := s.newDraft(t, in, plainSend)
		s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "").wantError(t, http.StatusConflict, "draft_not_pending")
		m := approve(d)
		s.clock.Add(9 * time.Second)
		if n := due(); n != 0 {
			t.Errorf("%d recipients are due before the end", n)
		}
		s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "", as(s.newKey(t, scopes("send")))).wantError(t, http.StatusForbidden, "insufficient_scope")
		undone := s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "").want(t, http.StatusOK)
		undone.wantAt(t, "status", `"pending"`)
		undone.wantAt(t, "message_id", `null`)
		undone.wantAt(t, "decided_by", `null`)
		s.do(t, http.MethodGet, "/v1/messages/"+m, "").want(t, http.StatusNotFound)
		s.clock.Add(20 * time.Second)
		if n := due(); n != 0 {
			t.Errorf("%d recipients are due after the undo", n)
		}
		s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "").wantError(t, http.StatusConflict, "draft_not_pending")
		// draft.sent went with its message.
		log := s.do(t, http.MethodGet, "/v1/events?inbox_id="+in.ID, "").want(t, http.StatusOK).strs(t, "data", "type")
		log = log[slices.Index(log, "draft.sent")+1:] // of the first draft
		if want := []string{"draft.created", "draft.pending", "draft.pending"}; !slices.Equal(log, want) {
			t.Errorf("the log has %q, want %q", log, want)
		}

		s.do(t, http.MethodPatch, draftPath(t, d), `{"text":"Better."}`).want(t, http.StatusOK)
		s.do(t, http.MethodGet, "/v1/messages/"+approve(d), "").want(t, http.StatusOK).wantAt(t, "text", `"Better."`)
		s.clock.Add(10 * time.Second)
		s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "").wantError(t, http.StatusConflict, "draft_not_pending")
		s.clock.Add(store.UndoMargin)
		if n := due(); n != 1 {
			t.Errorf("%d recipients are due at the end, want 1", n)
		}
	}, func(cfg *handlers.Config) { cfg.Undo = 10 * time.Second })
}

// A retry of an approval that was undone gets the response of the first call. It does not
// approve the draft again, whether it names a version or not.
func TestRetriedApprovalDoesNotRedoAnUndoneOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		in := s.newInbox(t, policy(store.PolicyApproval))
		for key, body := range map[string]string{"any": "", "version": `{"version":1}`} {
			d := s.newDraft(t, in, plainSend)
			approve := func() response {
				t.Helper()
				return s.do(t, http.MethodPost, draftPath(t, d, "/send"), body, with(idempotencyKey, key)).want(t, http.StatusCreated)
			}
			first := approve()
			s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "").want(t, http.StatusOK)
			again := approve()
			again.wantSame(t, first)
			if again.header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("%s: the retry was not replayed", key)
			}
			s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK).wantAt(t, "status", `"pending"`)
			s.do(t, http.MethodPost, draftPath(t, d, "/send"), body).want(t, http.StatusCreated)
		}
		if n := s.outbound(t); n != 2 {
			t.Errorf("%d messages are to be sent, want 2", n)
		}
	}, func(cfg *handlers.Config) { cfg.Undo = 10 * time.Second })
}
