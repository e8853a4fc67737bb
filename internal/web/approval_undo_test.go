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
	const undo = 10 * time.Second
	s := openSite(t, options{undo: undo})
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
}
