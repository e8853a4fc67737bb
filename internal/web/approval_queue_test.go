package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
)

// A user works through the queue: the original stands under the draft, keys move,
// open the form to reject and approve, and the title counts what is left.
func TestBrowserWorksThroughTheQueue(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "buyer", gen.SendPolicyApproval)
		m := s.put(t, in, "From: Ann <ann@out.example>\r\nTo: OWN\r\nSubject: Your offer\r\nMessage-ID: <1@out.example>\r\n\r\nWhat do twenty chairs cost?\r\n")
		response, err := s.api.ReplyToMessage(s.asUser(t), &gen.MessageReply{Text: gen.NewOptNilString("They cost $1,200.50 in all.")}, gen.ReplyToMessageParams{MessageID: m.ID})
		must(t, err)
		reply, ok := response.(*gen.Draft)
		if !ok {
			t.Fatalf("the reply was not held: %T", response)
		}
		second := s.hold(t, in, mailTo("carl@out.example", "Second", "Second text"))
		third := s.hold(t, in, mailTo("carl.with-a-long-name.of-a-long-department@out.example", "Third", strings.Repeat("Third text costs $1. ", 20)))
		b := s.browse(t)
		b.open("/approvals/" + reply.ID)
		b.shows("In response to", "What do twenty chairs cost?", "names an amount of money: $1,200.50", "is not verified", "Keys: A approve")
		b.waits(`document.title.startsWith('(3) ')`)
		b.shoot("approval-reply")
		press := func(key string) { b.do(chromedp.KeyEvent(key)) }
		goes := func(key, id string) {
			b.loads(200, chromedp.KeyEvent(key))
			if got := b.eval("location.pathname"); got != "/approvals/"+id {
				t.Errorf("%s leads to %s", key, got)
			}
		}
		goes("k", second.ID)
		goes("k", third.ID)
		press("r")
		b.waits(`document.activeElement.name === 'reason'`)
		press("a") // is typed, and approves nothing
		if got := b.eval(`document.activeElement.value`); got != "a" {
			t.Errorf("the reason is %q", got)
		}
		b.open("/approvals/" + third.ID)
		goes("j", second.ID)
		b.loads(200, chromedp.KeyEvent("a"))
		b.shows("Approved: “Second” is queued")
		b.open("/approvals")
		b.shoot("approvals-select")
		for _, width := range []int64{1280, 390} { // the warning and the whole address of each draft are in view
			b.do(chromedp.EmulateViewport(width, 844))
			const shown = `[...document.querySelectorAll('.messages li')].filter((li) => !['.at .warn', '.from'].every((part) => {
				const e = li.querySelector(part), has = e?.getBoundingClientRect(), row = li.getBoundingClientRect();
				return e && e.scrollWidth <= e.clientWidth + 1 && has.left >= row.left && has.right <= row.right;
			})).map((li) => li.innerText).join()`
			if got := b.eval(shown); got != "" {
				t.Errorf("%d pixels wide, these drafts are cut off: %s", width, got)
			}
		}
		b.do(chromedp.EmulateViewport(1280, 900))
		b.eval(`document.querySelectorAll('[name=draft]').forEach((c) => { c.checked = true; }) || ""`)
		b.click("#many button")
		b.shows("2 approved and queued for delivery.", "No drafts to approve")
		for _, id := range []string{reply.ID, second.ID, third.ID} {
			d, err := s.api.GetDraft(s.asUser(t), gen.GetDraftParams{DraftID: id})
			must(t, err)
			if d.Status != "sent" {
				t.Errorf("%s is %s", d.Subject, d.Status)
			}
		}
	})
}
