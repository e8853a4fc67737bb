package handlers_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
)

func TestThreads(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	list := "/v1/inboxes/" + in.ID + "/threads"
	first := s.receive(t, in, "From: Ann <ann@out.example>\nSubject: Offer\nMessage-ID: <1@out.example>\n\nOur offer.")
	s.clock.Add(time.Minute)
	other := s.receive(t, in, "From: bob@out.example\nSubject: Lunch\nMessage-ID: <2@out.example>\n\nAt noon?")
	got := s.do(t, http.MethodGet, list, "").want(t, http.StatusOK)
	if d := cmp.Diff([]string{other.ThreadID, first.ThreadID}, got.strs(t, "data", "id")); d != "" {
		t.Fatalf("threads (-want +got):\n%s", d)
	}

	s.clock.Add(time.Minute)
	reply := s.do(t, http.MethodPost, "/v1/messages/"+first.ID+"/reply", `{"text":"Too much."}`).want(t, http.StatusCreated)
	got = s.do(t, http.MethodGet, list+"?limit=1", "").want(t, http.StatusOK)
	got.wantAt(t, "data.0.message_count", "2")
	for path, want := range map[string]string{
		"data.0.object": "thread", "data.0.id": first.ThreadID, "data.0.inbox_id": in.ID, "data.0.subject": "Offer",
		"data.0.latest_message.id": reply.str(t, "id"), "data.0.latest_message.direction": "out",
		"data.0.latest_message.from.email": in.Address, "data.0.latest_message.to.0.email": "ann@out.example", "data.0.latest_message.snippet": "Too much.",
		"data.0.last_message_at": after(2 * time.Minute), "data.0.created_at": after(0),
		"data.0.participants.0": "ann@out.example", "data.0.participants.1": in.Address,
	} {
		got.wantAt(t, path, fmt.Sprintf("%q", want))
	}
	got = s.do(t, http.MethodGet, list+"?limit=1&cursor="+got.str(t, "cursor"), "").want(t, http.StatusOK)
	got.wantAt(t, "data.0.id", fmt.Sprintf("%q", other.ThreadID))
	got.wantAt(t, "has_more", "false")

	one := s.do(t, http.MethodGet, list+"/"+first.ThreadID, "").want(t, http.StatusOK)
	if d := cmp.Diff([]string{first.ID, reply.str(t, "id")}, one.strs(t, "messages", "id")); d != "" {
		t.Errorf("messages of a thread (-want +got):\n%s", d)
	}
	one.wantAt(t, "messages.0.text", `"Our offer.\n"`)
	one.wantAt(t, "messages.0.html", "null")
}

// A thread whose latest message lost its content loses only the snippet. A
// thread without messages is gone.
func TestThreadsOfWhatIsDeleted(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t, func(in *store.Inbox) { in.RetentionDays = 1 })
	m := s.receive(t, in, "Subject: Offer")
	thread := "/v1/inboxes/" + in.ID + "/threads/" + m.ThreadID
	s.clock.Add(25 * time.Hour)
	if _, err := s.store.ExpireInbox(t.Context(), in.Seq, store.Time{}); err != nil {
		t.Fatal(err)
	}
	got := s.do(t, http.MethodGet, thread, "").want(t, http.StatusOK)
	got.wantAt(t, "latest_message.snippet", "null")
	got.wantAt(t, "messages.0.expired", "true")
	s.do(t, http.MethodDelete, "/v1/messages/"+m.ID, "").want(t, http.StatusOK)
	s.do(t, http.MethodGet, thread, "").wantError(t, http.StatusNotFound, "not_found")
	s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/threads", "").want(t, http.StatusOK).wantAt(t, "data", "[]")
}

// A long thread shows its latest messages; the list returns all.
func TestLongThreads(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	first := s.receive(t, in, "Subject: long\nMessage-ID: <0@out.example>")
	var last store.Message
	for i := range store.ThreadMessages {
		last = s.receive(t, in, fmt.Sprintf("Subject: Re: long\nMessage-ID: <%d@out.example>\nIn-Reply-To: <0@out.example>", i+1))
	}
	got := s.do(t, http.MethodGet, "/v1/inboxes/"+in.ID+"/threads/"+first.ThreadID, "").want(t, http.StatusOK)
	got.wantAt(t, "message_count", fmt.Sprint(store.ThreadMessages+1))
	ids := got.strs(t, "messages", "id")
	if len(ids) != store.ThreadMessages || ids[0] == first.ID || ids[len(ids)-1] != last.ID {
		t.Errorf("%d messages, want the latest %d, oldest first", len(ids), store.ThreadMessages)
	}
	page := s.do(t, http.MethodGet, "/v1/messages?limit=100&thread_id="+first.ThreadID, "").want(t, http.StatusOK)
	page = s.do(t, http.MethodGet, "/v1/messages?limit=100&thread_id="+first.ThreadID+"&cursor="+page.str(t, "cursor"), "").want(t, http.StatusOK)
	if d := cmp.Diff([]string{first.ID}, page.strs(t, "data", "id")); d != "" {
		t.Errorf("the rest of the list (-want +got):\n%s", d)
	}
}
