package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
)

// What a person has read is known for that person alone: opening a message or its
// thread reads it, a HEAD request or a list does not, and all can be marked as read.
func TestUnreadIsPerPerson(t *testing.T) {
	s := openSite(t)
	in := s.newInbox(t, "news", gen.SendPolicyOpen)
	s.put(t, in, "From: Old <old@out.example>\r\nTo: OWN\r\nSubject: Before\r\n\r\nOld\r\n")
	_, later := s.newUser(t, "later@example.com")
	s.clock.Add(time.Minute)
	first := s.put(t, in, "From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: First\r\nMessage-ID: <first@out.example>\r\n\r\nHello\r\n")
	s.put(t, in, "From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: Re: First\r\nIn-Reply-To: <first@out.example>\r\n\r\nHello again\r\n")
	third := s.put(t, in, "From: Bob <bob@out.example>\r\nTo: OWN\r\nSubject: Third\r\n\r\nHello\r\n")
	response, err := s.api.SendMessage(s.asUser(t), mailTo("carl@out.example", "Sent", "Hello"), gen.SendMessageParams{InboxID: in.ID})
	must(t, err)
	sent := response.(*gen.Message)
	ann, bob := s.visitAsUser(t), s.visitWith(t, later)
	want := func(v *visitor, path string, n int) {
		t.Helper()
		if got := strings.Count(v.get(path).want(t, http.StatusOK).body, `<li class="unread"`); got != n {
			t.Errorf("%s shows %d unread, want %d", path, got, n)
		}
	}
	list, threads := "/messages?inbox="+in.ID, "/inboxes/"+in.ID
	want(ann, "/messages", 3)
	want(ann, list, 3)
	want(ann, threads, 2)
	want(ann, "/", 3)
	ann.get("/inboxes").want(t, http.StatusOK).has(t, `title="Unread messages">3<`)
	ann.do(http.MethodHead, "/messages/"+third.ID, "", nil).want(t, http.StatusOK)
	want(ann, "/messages", 3)
	ann.get("/messages/"+third.ID).want(t, http.StatusOK)
	want(ann, "/messages", 2)
	want(ann, threads, 1)
	ann.get("/inboxes/"+in.ID+"/threads/"+first.ThreadID).want(t, http.StatusOK)
	want(ann, "/messages", 0)
	want(ann, threads, 0)
	if page := ann.get("/inboxes").want(t, http.StatusOK); strings.Contains(page.body, "Unread messages") {
		t.Error("the inbox still has unread messages")
	}
	unread := "/messages/" + first.ID + "/unread"
	ann.get("/messages/"+first.ID).has(t, `action="`+unread+`"`)
	if to := ann.post(unread, nil).want(t, http.StatusSeeOther).header.Get("Location"); to != threads {
		t.Errorf("it leads to %s", to)
	}
	want(ann, "/messages", 1)
	want(ann, threads, 1)
	ann.post(unread, nil).want(t, http.StatusSeeOther)
	ann.get("/inboxes").want(t, http.StatusOK).has(t, `title="Unread messages">1<`)
	ann.get("/messages/"+first.ID).want(t, http.StatusOK)
	want(ann, "/messages", 0)
	ann.post("/messages/msg_none/unread", nil).want(t, http.StatusNotFound)
	ann.post("/messages/"+sent.ID+"/unread", nil).want(t, http.StatusNotFound)
	want(bob, "/messages", 3)
	bob.post("/messages/read", nil).want(t, http.StatusSeeOther)
	want(bob, "/messages", 0)
	bob.post(unread, nil).want(t, http.StatusSeeOther) // although all are read up to now
	want(bob, "/messages", 1)
	want(ann, "/messages", 0)
	bob.post("/messages/read", nil).want(t, http.StatusSeeOther)
	want(bob, "/messages", 0)
	s.clock.Add(time.Minute)
	fourth := s.put(t, in, "From: Bob <bob@out.example>\r\nTo: OWN\r\nSubject: Fourth\r\n\r\nHello\r\n")
	want(bob, "/messages", 1)
	want(ann, "/messages", 1)
	ann.get("/messages/"+fourth.ID).want(t, http.StatusOK)
	ann.post("/messages/"+fourth.ID+"/delete", nil).want(t, http.StatusSeeOther) // what was read can be deleted
	want(bob, "/messages", 0)
}
