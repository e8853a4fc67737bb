package handlers_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

const undoTime = 10 * time.Second

func withUndo(cfg *handlers.Config) { cfg.Undo = undoTime }

// person returns the context of calls of a person who approves drafts of the account.
func (s *server) person(t *testing.T) context.Context {
	t.Helper()
	const email = "eve@example.com"
	u, err := s.store.UserByName(t.Context(), email)
	if errors.Is(err, store.ErrNotFound) {
		u, err = s.store.CreateUser(t.Context(), s.account, email, store.RoleApprover, store.UserLink{Hash: []byte("ann"), ExpiresAt: s.clock.Now().Add(time.Hour)})
	}
	must(t, err)
	return httpapi.AsPerson(t.Context(), httpapi.Person{Seq: u.Seq, AccountID: s.account, ID: u.ID, Role: u.Role})
}

// sendAsPerson returns the response to a person who approves a draft.
func (s *server) sendAsPerson(t *testing.T, id string) (*gen.Message, error) {
	t.Helper()
	api, err := httpapi.NewLocalClient(s.service)
	must(t, err)
	return api.SendDraft(s.person(t), gen.OptDraftSend{}, gen.SendDraftParams{DraftID: id})
}

// approve returns the outcome of the approval by a person, and the rule that refuses it.
func (s *server) approve(t *testing.T, id string) (outcome, string) {
	t.Helper()
	_, err := s.sendAsPerson(t, id)
	if err == nil {
		return accepted, ""
	}
	refused, ok := errors.AsType[*gen.ErrorStatusCodeWithHeaders](err)
	if !ok {
		t.Fatal(err)
	}
	e := refused.Response.Error
	return outcome(e.Code), string(e.Rule.Or(""))
}

func (s *server) due(t *testing.T) int {
	t.Helper()
	claimed, err := s.store.ClaimRecipients(t.Context(), 10, time.Minute, nil)
	must(t, err)
	return len(claimed)
}

// The message of a draft that a key approves leaves at once. The approval of a person
// waits for 10 seconds, in which it can be undone: nothing is stored, counted or reported
// before, and after an undo the draft can be edited and approved again.
func TestUndoApproval(t *testing.T) {
	s := serve(t, withUndo)
	in := s.newInbox(t, policy(store.PolicyApproval))
	byKey := s.newDraft(t, in, plainSend)
	s.do(t, http.MethodPost, draftPath(t, byKey, "/send"), "").want(t, http.StatusCreated)
	if n := s.due(t); n != 1 {
		t.Errorf("%d recipients are due after an approval by a key, want 1", n)
	}
	s.do(t, http.MethodPost, draftPath(t, byKey, "/undo"), "").wantError(t, http.StatusConflict, "draft_not_pending")

	d := s.newDraft(t, in, plainSend)
	s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "").wantError(t, http.StatusConflict, "draft_not_pending")
	approve := func() string {
		t.Helper()
		m, err := s.sendAsPerson(t, d.str(t, "id"))
		must(t, err)
		waits := s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK)
		waits.wantAt(t, "status", `"scheduled"`)
		waits.wantAt(t, "send_after", `"`+s.clock.Now().Add(undoTime).UTC().Format("2006-01-02T15:04:05.000Z")+`"`)
		waits.wantAt(t, "message_id", `null`)
		return m.ID
	}
	m := approve()
	for _, path := range []string{"/send", "/reject"} {
		s.do(t, http.MethodPost, draftPath(t, d, path), "").wantError(t, http.StatusConflict, "draft_not_pending")
	}
	s.do(t, http.MethodPatch, draftPath(t, d), `{"text":"Other."}`).wantError(t, http.StatusConflict, "draft_not_pending")
	s.clock.Add(undoTime - time.Second)
	s.expireDrafts(t, 0)
	s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "", as(s.newKey(t, scopes("send")))).wantError(t, http.StatusForbidden, "insufficient_scope")
	undone := s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "").want(t, http.StatusOK)
	undone.wantAt(t, "status", `"pending"`)
	undone.wantAt(t, "send_after", `null`)
	undone.wantAt(t, "decided_by", `null`)
	s.clock.Add(2 * undoTime)
	s.expireDrafts(t, 0)
	s.do(t, http.MethodGet, "/v1/messages/"+m, "").want(t, http.StatusNotFound)
	s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "").wantError(t, http.StatusConflict, "draft_not_pending")

	s.do(t, http.MethodPatch, draftPath(t, d), `{"text":"Better."}`).want(t, http.StatusOK)
	m = approve()
	s.clock.Add(undoTime)
	s.do(t, http.MethodPost, draftPath(t, d, "/undo"), "").wantError(t, http.StatusConflict, "draft_not_pending")
	s.expireDrafts(t, 1)
	s.expireDrafts(t, 0)
	s.do(t, http.MethodGet, "/v1/messages/"+m, "").want(t, http.StatusOK).wantAt(t, "text", `"Better."`)
	sent := s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK)
	sent.wantAt(t, "status", `"sent"`)
	sent.wantAt(t, "message_id", `"`+m+`"`)
	if n := s.due(t); n != 1 {
		t.Errorf("%d recipients are due at the end, want 1", n)
	}
	log := s.do(t, http.MethodGet, "/v1/events?inbox_id="+in.ID, "").want(t, http.StatusOK).strs(t, "data", "type")
	log = log[slices.Index(log, "draft.sent")+1:] // of the first draft
	if want := []string{"draft.created", "draft.pending", "draft.pending", "draft.pending", "message.queued", "draft.sent"}; !slices.Equal(log, want) {
		t.Errorf("the log has %q, want %q", log, want)
	}
}

// What a person approved and a rule refuses when it is due goes back to the approvers,
// who learn why; what has no room under a limit waits until it fits, and can be undone
// until then.
func TestApprovedDraftThatIsRefusedWhenDue(t *testing.T) {
	s := serve(t, withUndo)
	in := s.newInbox(t, policy(store.PolicyApproval))
	var paths []string
	for range 3 {
		d := s.newDraft(t, in, plainSend)
		paths = append(paths, draftPath(t, d))
		if _, err := s.sendAsPerson(t, d.str(t, "id")); err != nil {
			t.Fatal(err)
		}
	}
	want := func(path, status string) response {
		t.Helper()
		d := s.do(t, http.MethodGet, path, "").want(t, http.StatusOK)
		d.wantAt(t, "status", `"`+status+`"`)
		return d
	}
	s.do(t, http.MethodPatch, "/v1/inboxes/"+in.ID, `{"limits":{"sends_per_hour":1}}`).want(t, http.StatusOK)
	s.clock.Add(undoTime)
	s.expireDrafts(t, 1)
	want(paths[0], "sent")
	for _, path := range paths[1:] {
		want(path, "scheduled").wantAt(t, "send_after", `"`+s.clock.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000Z")+`"`)
	}
	s.do(t, http.MethodPost, paths[1]+"/undo", "").want(t, http.StatusOK).wantAt(t, "status", `"pending"`)
	s.do(t, http.MethodPost, "/v1/lists", `{"direction":"outbound","action":"block","pattern":"ann@out.example"}`).want(t, http.StatusCreated)
	s.clock.Add(time.Hour)
	s.expireDrafts(t, 1)
	back := want(paths[2], "pending")
	back.wantAt(t, "version", `2`)
	back.wantAt(t, "decided_by", `null`)
	back.wantText(t, `"not_sent"`)
	back.wantText(t, "is blocked by list entry")
	if n := s.outbound(t); n != 1 {
		t.Errorf("%d messages left, want 1", n)
	}
}

// A person who is removed after an approval, or may no longer approve, has decided nothing.
func TestApprovalOfAPersonWhoIsRemoved(t *testing.T) {
	s := serve(t, withUndo)
	in := s.newInbox(t, policy(store.PolicyApproval))
	d := s.newDraft(t, in, plainSend)
	for _, end := range []func(by string) error{
		func(by string) error { return s.store.SetRole(t.Context(), s.account, by, store.RoleViewer) },
		func(string) error {
			_, err := s.store.RemoveUser(t.Context(), "eve@example.com")
			return err
		},
	} {
		if _, err := s.sendAsPerson(t, d.str(t, "id")); err != nil {
			t.Fatal(err)
		}
		by := s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK).str(t, "decided_by")
		must(t, end(by))
		s.clock.Add(undoTime)
		s.expireDrafts(t, 1)
		back := s.do(t, http.MethodGet, draftPath(t, d), "").want(t, http.StatusOK)
		back.wantAt(t, "status", `"pending"`)
		back.wantText(t, "who approved it no longer has access")
		_ = s.store.SetRole(t.Context(), s.account, by, store.RoleApprover) // unless the person is gone
	}
	if n := s.outbound(t); n != 0 {
		t.Errorf("%d messages left", n)
	}
}
