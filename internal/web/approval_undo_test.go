package web_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
)

// TestUndoIsOfferedWhileItWorks: the button is there from the approval to the end of
// the time, and for no other draft.
func TestUndoIsOfferedWhileItWorks(t *testing.T) {
	t.Parallel()
	const undo = 10 * time.Second
	each(t, func(t *testing.T, s *site) {
		v := s.visitAsUser(t)
		in := s.newInbox(t, "held", gen.SendPolicyApproval)
		dr := s.hold(t, in, mailTo("ann@out.example", "Hello", "Hello Ann"))
		offered := func(id string) bool {
			t.Helper()
			a := v.get("/approvals?undo=" + id)
			if a.status != 200 {
				t.Fatalf("the page for %q has status %d", id, a.status)
			}
			return strings.Contains(a.body, "/undo\"")
		}
		if offered(dr.ID) {
			t.Error("the undo of a pending draft is offered")
		}
		if offered("drf_unknown") {
			t.Error("the undo of an unknown draft is offered")
		}
		form := []string{"version", strconv.Itoa(dr.Version)}
		a := v.post("/approvals/"+dr.ID+"/approve", form)
		if want := "/approvals?undo=" + dr.ID; a.header.Get("Location") != want {
			t.Fatalf("approval leads to %q, want %q", a.header.Get("Location"), want)
		}
		s.clock.Add(undo - time.Second)
		if !offered(dr.ID) {
			t.Error("the undo is not offered in the last second")
		}
		v.post("/approvals/"+dr.ID+"/undo", nil)
		if got, err := s.api.GetDraft(s.asUser(t), gen.GetDraftParams{DraftID: dr.ID}); err != nil || got.Status != string(gen.DraftStatusPending) {
			t.Fatalf("after the undo: %+v, %v", got, err)
		}
		if offered(dr.ID) {
			t.Error("the undo is offered a second time")
		}
		v.post("/approvals/"+dr.ID+"/approve", form)
		s.clock.Add(undo)
		if offered(dr.ID) {
			t.Error("the undo is offered after its time")
		}
	}, options{undo: undo})
}

// TestUndoIsNotOfferedWithoutTime: a server that sends an approved draft at once has
// no button for it.
func TestUndoIsNotOfferedWithoutTime(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		v := s.visitAsUser(t)
		in := s.newInbox(t, "held", gen.SendPolicyApproval)
		dr := s.hold(t, in, mailTo("ann@out.example", "Hello", "Hello Ann"))
		v.post("/approvals/"+dr.ID+"/approve", []string{"version", strconv.Itoa(dr.Version)})
		a := v.get("/approvals?undo=" + dr.ID)
		if a.status != 200 || strings.Contains(a.body, "/undo\"") {
			t.Errorf("status %d, or the undo is offered", a.status)
		}
	})
}
