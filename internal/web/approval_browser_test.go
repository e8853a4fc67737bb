package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
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
	s := openSite(t)
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
}

// Two who edit the same draft: the second sees what the first did, and does not
// write over it unknowingly. Nor is an old version approved.
func TestTwoEditors(t *testing.T) {
	s := openSQLite(t)
	in := s.newInbox(t, "buyer", gen.SendPolicyApproval)
	d := s.hold(t, in, mailTo("ann@out.example", "Order", "20 chairs"))
	v := s.visitAsUser(t)
	path := "/approvals/" + d.ID + "/edit"
	edit := func(version, text string) response {
		return v.post(path, []string{"version", version, "subject", "Order", "text", text, "seen_subject", "=Order", "seen_text", "=20 chairs", "seen_html", "="})
	}
	edit("1", "30 chairs").want(t, 200).has(t, "Changes saved.", "<del>20 chairs</del>", "<ins>30 chairs</ins>")
	edit("1", "40 chairs").want(t, 409).has(t, "Another user edited this draft", "<del>20 chairs</del>", "<ins>30 chairs</ins>", ">\n40 chairs</textarea>", `name="version" value="2"`)
	edit("2", "40 chairs").want(t, 200)
	v.get(path).want(t, 200).has(t, ">\n40 chairs</textarea>", `name="version" value="3"`)
	edit("3", "").want(t, 400).has(t, "text-fault")
	v.post("/approvals/"+d.ID+"/approve", []string{"version", "1"}).want(t, 409).has(t, "Nothing was sent", "40 chairs")
	if n := s.sentFrom(t, in); n != 0 {
		t.Errorf("%d messages were sent by the approval of an old version", n)
	}
	v.post("/approvals/"+d.ID+"/approve", []string{"version", "x"}).want(t, 400)
	v.post("/approvals/drf_none/approve", []string{"version", "1"}).want(t, 404)
}

// Each decision leads to the next draft, and the queue says what is unusual about one.
func TestDecisionsLeadOn(t *testing.T) {
	s := openSQLite(t)
	in := s.newInbox(t, "buyer", gen.SendPolicyApproval)
	var ids []string
	for _, text := range []string{"Refund EUR 100.00", "Two", "Three"} {
		ids = append(ids, "/approvals/"+s.hold(t, in, mailTo("ann@out.example", "Order", text)).ID)
	}
	v := s.visitAsUser(t)
	v.get("/approvals").want(t, 200).has(t, "unusual", "The message names an amount of money: EUR 100.00.")
	for _, tt := range []struct {
		path string
		form []string
		next string
	}{
		{ids[2] + "/approve", []string{"version", "1"}, ids[1]},
		{ids[0] + "/reject", []string{"reason", "Too much"}, ids[1]},
		{ids[1] + "/edit", []string{"version", "1", "subject", "Order", "text", "2", "approve", "1"}, "/approvals"},
	} {
		to, _, _ := strings.Cut(v.post(tt.path, tt.form).want(t, 303).header.Get("Location"), "?")
		if to != tt.next {
			t.Errorf("%s leads to %s, want %s", tt.path, to, tt.next)
		}
	}
	v.get("/approvals?status=rejected").want(t, 200).has(t, "Reason: Too much")
	if n := s.sentFrom(t, in); n != 2 {
		t.Errorf("%d messages were sent, want 2", n)
	}
}

func (s *site) sentFrom(t *testing.T, in *gen.Inbox) int {
	t.Helper()
	list, err := s.api.ListInboxMessages(s.asUser(t), gen.ListInboxMessagesParams{InboxID: in.ID, Direction: gen.NewOptDirection(gen.DirectionOut)})
	must(t, err)
	return len(list.Data)
}
