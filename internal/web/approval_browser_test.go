package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/approval"
)

// order is a message with everything that a draft can have.
func order() *gen.MessageSend {
	m := mailTo("ann@out.example", "Purchase order 1042", "Please confirm the order.\nIt is for 20 chairs.\n")
	m.Cc = gen.NewOptOptionalRecipients(gen.NewOptionalAddressArrayOptionalRecipients(gen.OptionalAddressArray{gen.NewMailboxAddress("carl@out.example")}))
	m.Bcc = gen.NewOptOptionalRecipients(gen.NewOptionalAddressArrayOptionalRecipients(gen.OptionalAddressArray{gen.NewMailboxAddress("hidden@out.example")}))
	m.HTML = gen.NewOptNilString(`<p>Please <b>confirm</b> the order.</p><img src="https://pixel.example/1.gif">`)
	m.Attachments = gen.MessageAttachmentInputs{{Filename: "order.pdf", Content: []byte("%PDF-1.7 order")}}
	m.Headers = gen.NewOptNilMailHeaders(gen.MailHeaders{"X-Order": "1042"})
	return m
}

// A draft arrives while the queue is open. It is edited, and the version that was
// seen is approved.
func TestBrowserApproves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "buyer", gen.SendPolicyApproval)
		b := s.browse(t)
		b.open("/approvals")
		b.shows("No drafts to approve")
		d := s.hold(t, in, order())
		b.waits(`document.querySelector('main').innerText.includes('Purchase order 1042')`)
		b.waits(`document.querySelector('.badge.count').innerText.startsWith('1')`)
		b.shoot("approvals")
		b.click("a[href='/approvals/" + d.ID + "']")
		b.shows("ann@out.example", "carl@out.example", "hidden@out.example", "X-Order", "1042", "order.pdf", "1 remote image blocked", "version 1")
		b.framed(t, "<b>confirm</b>")
		b.shoot("approval")
		if file := s.visitAsUser(t).get("/approvals/" + d.ID + "/attachments/" + d.Attachments[0].ID); file.status != 303 ||
			s.visit(t).get(file.header.Get("Location")).want(t, 200).body != "%PDF-1.7 order" {
			t.Errorf("the attachment: %d, %v", file.status, file.header)
		}

		b.click("a[href$='/edit']")
		b.do(chromedp.SetValue(chromedp.CSS("[name=subject]"), "Purchase order 1042, corrected"))
		b.shoot("draft-edit")
		b.click("form.card button")
		b.shows("Changes saved.", "corrected", "version 2")
		b.click("button.wide")
		b.shows("Approved:", "is queued for delivery", "No drafts to approve")
		got, err := s.api.GetDraft(s.asUser(t), gen.GetDraftParams{DraftID: d.ID})
		must(t, err)
		if got.Status != "sent" || got.DecidedBy.Or("") != s.user.ID || got.Subject != "Purchase order 1042, corrected" || got.HTML.Or("") != order().HTML.Value {
			t.Errorf("the draft: %+v", got)
		}
		b.open("/approvals?status=sent")
		b.click("a[href='/approvals/" + d.ID + "']")
		b.shows("Approved by you", "Sent message")
	})
}

func TestBrowserRejects(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "buyer", gen.SendPolicyApproval)
		d := s.hold(t, in, mailTo("ann@out.example", "Cheap chairs", "Buy them."))
		b := s.browse(t)
		b.open("/approvals/" + d.ID)
		b.do(chromedp.Click(chromedp.CSS("aside summary")), chromedp.SendKeys(chromedp.CSS("[name=reason]"), "We have chairs."))
		b.shoot("reject")
		b.click("button.danger")
		b.shows("Rejected: “Cheap chairs” will not be sent.")
		got, err := s.api.GetDraft(s.asUser(t), gen.GetDraftParams{DraftID: d.ID})
		must(t, err)
		if got.Status != "rejected" || got.RejectReason.Or("") != "We have chairs." || got.DecidedBy.Or("") != s.user.ID {
			t.Errorf("the draft: %+v", got)
		}
		b.open("/approvals/" + d.ID)
		b.shows("Rejected by you", "We have chairs.")
		linked, other := s.browseSignedOut(t), s.hold(t, in, mailTo("ann@out.example", "Good chairs", "Buy them."))
		linked.open(strings.TrimPrefix(s.links.URL(approval.Link{
			AccountID: s.account, DraftID: other.ID, Version: other.Version, Approver: "ben@out.example", Expires: s.clock.Now().Add(time.Hour).Unix(),
		}), s.url))
		linked.shows("Good chairs", "Approve and send")
		linked.shoot("approve-link")
	}, options{approvers: []string{"ben@out.example"}})
}

// One user edits a draft while another approves the old version: nothing is sent,
// and the page shows the changes. Then one approves a draft that the other has
// already approved.
func TestBrowserTwoApprovers(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *site) {
		in := s.newInbox(t, "buyer", gen.SendPolicyApproval)
		d := s.hold(t, in, mailTo("ann@out.example", "Order", "20 chairs\n3 tables\nThank you"))
		one, two := s.browse(t), s.browse(t)
		one.open("/approvals/" + d.ID)
		two.open("/approvals/" + d.ID)
		two.click("a[href$='/edit']")
		two.do(chromedp.SetValue(chromedp.CSS("[name=text]"), "2000 chairs\n3 tables\nThank you"))
		two.click("form.card button")

		one.expect("409")
		one.loads(409, chromedp.Click(chromedp.CSS("button.wide")))
		one.shows("The draft was edited after you opened it.", "Nothing was sent", "2000 chairs")
		if gone, fresh := one.text("del"), one.text("ins"); gone != "20 chairs" || fresh != "2000 chairs" {
			t.Errorf("what changed: %q is gone, %q is new", gone, fresh)
		}
		one.shoot("conflict")
		if sent := s.sentFrom(t, in); sent != 0 {
			t.Fatalf("%d messages were sent", sent)
		}
		one.click("button.wide") // as it is now
		one.shows("is queued for delivery")
		two.expect("409")
		two.loads(409, chromedp.Click(chromedp.CSS("button.wide")))
		two.shows("Approved by")
		if strings.Contains(two.text("main"), "Approve and send") {
			t.Error("a decided draft can be decided again")
		}
		if sent := s.sentFrom(t, in); sent != 1 {
			t.Errorf("%d messages were sent, want 1", sent)
		}
	})
}

// Two who edit the same draft: the second sees what the first did, and does not
// write over it unknowingly.
func TestTwoEditors(t *testing.T) {
	t.Parallel()
	oneEngine(t, func(t *testing.T, s *site) {
		d := s.hold(t, s.newInbox(t, "buyer", gen.SendPolicyApproval), mailTo("ann@out.example", "Order", "20 chairs"))
		v := s.visitAsUser(t)
		path := "/approvals/" + d.ID + "/edit"
		edit := func(version, text string) response {
			return v.post(path, []string{"version", version, "subject", "Order", "text", text, "seen_subject", "=Order", "seen_text", "=20 chairs", "seen_html", "="})
		}
		edit("1", "30 chairs").want(t, 303)
		edit("1", "40 chairs").want(t, 409).has(t, "Another user edited this draft", "<del>20 chairs</del>", "<ins>30 chairs</ins>", ">\n40 chairs</textarea>", `name="version" value="2"`)
		edit("2", "40 chairs").want(t, 303)
		v.get(path).want(t, 200).has(t, ">\n40 chairs</textarea>", `name="version" value="3"`)
		edit("3", "").want(t, 400).has(t, "text-fault")
		v.post("/approvals/"+d.ID+"/approve", []string{"version", "x"}).want(t, 400)
		v.post("/approvals/drf_none/approve", []string{"version", "1"}).want(t, 404)
	})
}

func (s *site) sentFrom(t *testing.T, in *gen.Inbox) int {
	t.Helper()
	list, err := s.api.ListInboxMessages(s.asUser(t), gen.ListInboxMessagesParams{InboxID: in.ID, Direction: gen.NewOptDirection(gen.DirectionOut)})
	must(t, err)
	return len(list.Data)
}
