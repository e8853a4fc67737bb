package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
)

// The search finds messages of all inboxes, filters can be removed one by one, and
// selected messages are deleted.
func TestMessagesOfAllInboxes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		one, two := s.newInbox(t, "one", gen.SendPolicyOpen), s.newInbox(t, "two", gen.SendPolicyOpen)
		mail := "From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: %s\r\n\r\nThe word is %s. Your verification code is 482913.\r\n"
		s.put(t, one, fmt.Sprintf(mail, "First", "zebra"))
		second := s.put(t, two, fmt.Sprintf(mail, "Second", "zebra"))
		third := s.put(t, two, fmt.Sprintf(mail, "Third", "lion"))
		v := s.visitAsUser(t)
		v.get("/messages").want(t, http.StatusOK).has(t, "First", "Second", "Third", one.Address, two.Address, `<code class="chip" title="Verification code">482913</code>`)
		page := v.get("/messages?q=zebra&inbox="+two.ID).want(t, http.StatusOK).
			has(t, "Second", "“zebra”", "In "+two.Address, `href="/messages?q=zebra"`, `href="/messages?inbox=`+two.ID+`"`)
		if strings.Contains(page.body, ">First<") || strings.Contains(page.body, ">Third<") {
			t.Error("the filters are ignored")
		}
		if a := v.post("/messages/delete", nil).want(t, http.StatusSeeOther); a.header.Get("Location") != "/messages" {
			t.Errorf("without a selection: %s", a.header.Get("Location"))
		}
		v.get("/messages").want(t, http.StatusOK).has(t, "Select the messages to delete.")
		v.post("/messages/delete", []string{"message", second.ID, "message", third.ID, "message", "msg_gone", "inbox", two.ID}).want(t, http.StatusSeeOther)
		page = v.get("/inboxes/"+two.ID+"?list=messages").want(t, http.StatusOK).has(t, "2 messages deleted.")
		if strings.Contains(page.body, "msg_") {
			t.Errorf("messages are still found:\n%s", page.body)
		}
		v.get("/messages").want(t, http.StatusOK).has(t, "First")
	})
}

// At least 20 messages are visible on a laptop, and / goes to the search.
func TestBrowserShowsTwentyRows(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "busy", gen.SendPolicyOpen)
		for i := range 25 {
			s.put(t, in, fmt.Sprintf("From: The Corner Shop <orders@shop.example>\r\nTo: OWN\r\nMessage-ID: <%d@shop.example>\r\nSubject: Order %d\r\n\r\nYour verification code is 48%04d.\r\n", i, i, 1000+i))
		}
		b := s.browse(t)
		for _, path := range []string{"/inboxes/" + in.ID, "/inboxes/" + in.ID + "?list=messages", "/messages"} {
			b.open(path)
			b.do(chromedp.EmulateViewport(1440, 900))
			rows := b.eval(`String([...document.querySelectorAll('.messages > li')].filter((li) => li.getBoundingClientRect().bottom <= innerHeight).length)`)
			var n int
			if _, err := fmt.Sscan(rows, &n); err != nil || n < 20 {
				t.Errorf("%s shows %s rows on a laptop, want 20", path, rows)
			}
		}
		b.shoot("messages")
		b.open("/keys")
		b.loads(http.StatusOK, chromedp.KeyEvent("/"))
		b.shows("Order 24")
		b.do(chromedp.KeyEvent("/"))
		b.waits(`document.activeElement.name === 'q'`)
	})
}
