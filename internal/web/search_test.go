package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
)

// The search finds messages of all inboxes, filters can be removed one by one, and
// selected messages are deleted.
func TestMessagesOfAllInboxes(t *testing.T) {
	s := openSite(t)
	one, two := s.newInbox(t, "one", gen.SendPolicyOpen), s.newInbox(t, "two", gen.SendPolicyOpen)
	mail := "From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: %s\r\n\r\nThe word is <i>%s</i>. Your verification code is 482913.\r\n"
	s.put(t, one, fmt.Sprintf(mail, "First", "zebra"))
	second := s.put(t, two, fmt.Sprintf(mail, "Second", "zebra"))
	third := s.put(t, two, fmt.Sprintf(mail, "Third", "lion"))
	v := s.visitAsUser(t)
	v.get("/messages").want(t, http.StatusOK).has(t, "First", "Second", "Third", one.Address, two.Address, `title="Verification code">482913</code>`)
	page := v.get("/messages?q=zebra&inbox="+two.ID).want(t, http.StatusOK).
		has(t, "Second", "&lt;i&gt;<mark>zebra</mark>&lt;/i&gt;", `value="zebra"`, `<option value="`+two.ID+`" selected>`, `href="/messages">Clear`)
	if strings.Contains(page.body, ">First<") || strings.Contains(page.body, ">Third<") {
		t.Error("the filters are ignored")
	}
	label := gen.Marks{AddLabels: []gen.Label{"Urgent"}}
	_, err := s.api.UpdateMessage(s.asUser(t), &label, gen.UpdateMessageParams{MessageID: second.ID})
	must(t, err)
	_, err = s.api.UpdateThread(s.asUser(t), &label, gen.UpdateThreadParams{ThreadID: third.ThreadID})
	must(t, err)
	for path, want := range map[string][2]string{
		"/messages?label=URGENT": {"Second", "Third"}, "/inboxes/" + two.ID + "?label=urgent": {"Third", "Second"}, "/inboxes/" + two.ID + "?label=none": {"No results", "Second"},
	} {
		if page = v.get(path).want(t, http.StatusOK).has(t, want[0], `label=`); strings.Contains(page.body, want[1]) {
			t.Errorf("%s shows %s", path, want[1])
		}
	}
	v.get("/messages/"+second.ID).want(t, http.StatusOK).has(t, `href="/messages?label=urgent"`)
	v.get("/inboxes/"+two.ID+"/threads/"+second.ThreadID).want(t, http.StatusOK).has(t, `href="/messages?label=urgent"`)
	if a := v.post("/messages/delete", nil).want(t, http.StatusSeeOther); a.header.Get("Location") != "/messages" {
		t.Errorf("without a selection: %s", a.header.Get("Location"))
	}
	v.get("/messages").want(t, http.StatusOK).has(t, "Select the messages to delete.")
	v.post("/messages/delete", []string{"message", second.ID, "message", third.ID, "message", "msg_gone", "inbox", two.ID}).want(t, http.StatusSeeOther)
	page = v.get("/messages?inbox="+two.ID).want(t, http.StatusOK).has(t, "2 messages deleted.")
	if strings.Contains(page.body, "msg_") {
		t.Errorf("messages are still found:\n%s", page.body)
	}
	v.get("/messages").want(t, http.StatusOK).has(t, "First")
}

// The palette finds pages, and the inboxes of the own account.
func TestGoFindsPages(t *testing.T) {
	s := openSQLite(t)
	s.newInbox(t, "billing", gen.SendPolicyOpen)
	v := s.visitAsUser(t)
	v.get("/go?q=hooks").want(t, http.StatusOK).has(t, `href="/webhooks"`, "Search messages for “hooks”")
	v.get("/go?q=billing").want(t, http.StatusOK).has(t, "billing@")
	if page := v.get("/go?q=%25_%5C%00").want(t, http.StatusOK); strings.Contains(page.body, "billing@") {
		t.Errorf("wildcards find everything:\n%s", page.body)
	}
	s.otherAccount(t)
	if page := s.visitAsUser(t).get("/go?q=billing").want(t, http.StatusOK); strings.Contains(page.body, "billing@") {
		t.Errorf("another account's inbox is found:\n%s", page.body)
	}
}
