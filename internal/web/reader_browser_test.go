package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
)

// press types keys into the page, not into a field.
func (b *tab) press(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// A message opens beside the list on a wide window and on its own page on a narrow
// one; the keys move, open, select, reply and help.
func TestBrowserReadsBesideTheList(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "desk", gen.SendPolicyOpen)
		for i := range 12 {
			s.put(t, in, fmt.Sprintf("From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: Order %d\r\n\r\nPlease confirm order %d.\r\n", i, i))
		}
		shop := s.put(t, in, htmlMail("Your order has shipped", "The Shop", "order.pdf", newsletter))
		s.put(t, in, codeMail)
		b := s.browse(t)
		b.do(chromedp.EmulateViewport(1440, 900))
		b.open("/inboxes/" + in.ID + "?list=messages")
		b.do(marked)
		b.press("j")
		b.press("o")
		b.waits(`document.querySelector('.pane')?.innerText.includes('482913') === true`)
		b.press("j")
		b.waits(`document.querySelector('.pane iframe')?.contentDocument?.body?.innerText.includes('Your order has shipped')`)
		b.waits(`document.querySelector('.current a')?.innerText === 'Your order has shipped'`)
		b.sound()
		b.shot("reader")
		if got := b.eval(`String(document.querySelector('.pane').getBoundingClientRect().left >= document.querySelector('.list-side').getBoundingClientRect().right)`); got != "true" {
			t.Error("the pane is not beside the list")
		}
		b.press("k")
		b.waits(`document.querySelector('.pane')?.innerText.includes('482913') === true`)
		b.press("x")
		b.waits(`document.querySelector('.current [type=checkbox]')?.checked === true`)
		b.do(chromedp.Click(chromedp.CSS(".messages li:nth-child(4) a")))
		b.waits(`document.querySelector('.pane')?.innerText.includes('Please confirm order 10.') === true`)
		b.do(chromedp.Click(chromedp.CSS(".pane .under a[href^='/messages/']:not([href$=reply])")))
		b.waits(`!!document.querySelector('.pane .tabs')`)
		b.do(chromedp.Click(chromedp.CSS(".pane .tabs a[href$='tab=raw']")))
		b.waits(`document.querySelector('.pane #content')?.innerText.includes('Subject: Order 10') === true`)
		b.sound()
		b.waits(`window.marked`) // all of it on one page
		b.press("?")
		b.waits(`document.querySelector('#keys').open`)
		b.shot("keys")
		b.press("\x1b")
		b.waits(`!document.querySelector('#keys').open`)
		b.press("\x1b")
		b.waits(`!document.querySelector('.pane') && document.activeElement.innerText === 'Order 10'`)
		b.press("/")
		b.waits(`document.activeElement.name === 'q'`)
		b.open("/inboxes/" + in.ID + "/threads/" + shop.ThreadID)
		b.loads(200, chromedp.KeyEvent("r"))
		b.shows("Reply to “Your order has shipped”")
		b.do(chromedp.EmulateViewport(1024, 768))
		b.open("/inboxes/" + in.ID)
		b.click(".messages a")
		b.shows("482913")
	})
}

// The palette finds pages and inboxes and searches; without a script its page does.
func TestBrowserGoesAnywhere(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "signup-agent", gen.SendPolicyOpen)
		s.newInbox(t, "billing", gen.SendPolicyOpen)
		s.put(t, in, codeMail)
		b := s.browse(t)
		b.open("/keys")
		b.do(chromedp.Evaluate[chromedp.Void](`dispatchEvent.call(document, new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, bubbles: true}))`))
		b.waits(`document.querySelector('#palette').open && !!document.querySelector('#palette li.current')`)
		b.fill("#palette input", "UP-ag")
		b.waits(`document.querySelectorAll('#palette li').length === 3`)
		b.shot("palette")
		b.loads(200, chromedp.KeyEvent("\r"))
		b.shows("signup-agent@", "Your GitHub launch code")
		b.do(chromedp.Click(chromedp.CSS("[data-go]")))
		b.fill("#palette input", "launch")
		b.waits(`document.querySelector('#palette li:last-child')?.innerText === 'Search messages for “launch”'`)
		b.waits(`document.querySelector('#palette li.current')?.innerText.startsWith('Your GitHub launch code')`)
		b.loads(200, chromedp.KeyEvent("\r"))
		b.shows("Your GitHub launch code", "482913")
		v := s.visitAsUser(t)
		v.get("/go?q=hooks").want(t, 200).has(t, `href="/webhooks"`, "Search messages for “hooks”")
		v.get("/go?q=people").want(t, 200).has(t, `href="/settings/people"`)
		if page := v.get("/go?q=%25_%5C%00").want(t, 200); strings.Contains(page.body, "billing@") {
			t.Errorf("wildcards find everything:\n%s", page.body)
		}
		s.otherAccount(t)
		if page := s.visitAsUser(t).get("/go?q=billing").want(t, 200); strings.Contains(page.body, "billing@") {
			t.Errorf("another account's inbox is found:\n%s", page.body)
		}
	})
}

// shot takes screenshots of the current window, light and dark, if they are enabled.
func (b *tab) shot(name string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		b.do(b.colours(scheme))
		b.audit(scheme, "")
		b.picture(name + "-" + scheme)
	}
	b.do(b.colours("light"))
}
