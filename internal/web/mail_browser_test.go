package web_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
)

const newsletter = `<html><head><style>.card{border:1px solid #ddd;border-radius:8px;padding:16px;max-width:480px}h1{font-size:20px;color:#3d4fd6}</style></head>
<body><div class="card"><img src="cid:logo@out.example" alt="Shop" width="120" height="40"><h1>Your order has shipped</h1>
<p>Hello Ann, your order <b>1042</b> is on its way.</p><p><a href="https://shop.example/track/1042">Track the parcel</a></p>
<p>Sign in at <a href="https://evil.example/login">www.shop.example</a></p><img src="https://pixel.example/open.gif" width=1 height=1></div></body></html>`

const codeMail = "From: GitHub <noreply@github.com>\r\nTo: OWN\r\nMessage-ID: <c1@github.com>\r\nSubject: Your GitHub launch code\r\n\r\n" +
	"Your launch code is 482913. It is valid for 15 minutes.\r\n\r\nOr follow https://github.com/verify?token=8c1f0a9e\r\n"

// Create an inbox, read mail in it, reply to it and delete it.
func TestBrowserReadsMail(t *testing.T) {
	s := openSQLite(t)
	b := s.browse(t)
	b.open("/inboxes")
	b.shows("No inboxes yet")
	b.fill("[name=name]", "signup..agent")
	b.expect("400")
	b.loads(400, chromedp.Submit(chromedp.CSS("[name=name]")))
	b.fill("[name=name]", "signup-agent")
	b.loads(200, chromedp.Submit(chromedp.CSS("[name=name]")))
	b.shows("signup-agent@", "No messages yet")
	list, err := s.api.ListInboxes(s.asUser(t), gen.ListInboxesParams{})
	must(t, err)
	in := &list.Data[0]

	code := s.put(t, in, codeMail)
	s.put(t, in, "From: Ann <ann@out.example>\r\nTo: OWN\r\nMessage-ID: <c2@out.example>\r\nIn-Reply-To: <c1@github.com>\r\nSubject: Re: Your GitHub launch code\r\n\r\nDid it arrive?\r\n")
	shop := s.put(t, in, htmlMail("Your order has shipped", "The Shop", "Größe & more.pdf", newsletter))
	b.open("/inboxes/" + in.ID)
	b.shows("Your order has shipped", "Your GitHub launch code")
	b.shoot("inbox")
	b.do(chromedp.EmulateViewport(1440, 900), chromedp.KeyEvent("j"), chromedp.KeyEvent("o"))
	b.waits(`document.querySelector('.pane iframe')?.contentDocument?.body?.innerText.includes('Your order has shipped')`)
	b.sound()
	if at := b.eval(`location.pathname`); at != "/inboxes/"+in.ID+"/threads/"+shop.ThreadID {
		t.Errorf("the open message has the address %s", at)
	}
	b.eval(`history.back(), ""`)
	b.waits(`!document.querySelector('.pane') && location.pathname === '/inboxes/` + in.ID + `'`)
	b.copies(".messages [data-copy]", "482913")
	b.copies("h1 [data-copy]", in.Address)
	b.do(chromedp.EmulateViewport(1280, 900))
	b.row("a[href*='" + code.ThreadID + "']")
	b.shows("482913", "https://github.com/verify?token=8c1f0a9e", "Did it arrive?")
	if got := b.text(".found"); !strings.Contains(got, "482913") || !strings.Contains(got, "https://github.com/verify") {
		t.Errorf("found in the mail: %s", got)
	}
	b.shoot("thread")

	b.open("/inboxes/" + in.ID + "/threads/" + shop.ThreadID)
	b.shows("1 remote image blocked", "Größe & more.pdf")
	b.framed(t, "Your order has shipped", "leads to evil.example")
	b.shoot("thread-html")
	b.open("/messages/" + shop.ID)
	b.shows("shop@out.example", "ID", shop.ID)
	b.shoot("message")

	b.open("/inboxes/" + in.ID)
	b.fill("[name=q]", "launch")
	b.loads(200, chromedp.Submit(chromedp.CSS("[name=q]")))
	b.shows("Did it arrive?")
	if strings.Contains(b.text("main"), "shipped") {
		t.Error("the search finds what has not the word")
	}
	b.shoot("search")

	b.open("/messages/" + code.ID + "/reply")
	b.do(chromedp.SendKeys(chromedp.CSS("[name=text]"), "Thank you."))
	b.shoot("reply")
	b.click("form.card button")
	b.shows("Message queued for delivery.", "Thank you.")
	b.open("/write?inbox=" + in.ID)
	b.fill("[name=to]", "not an address")
	b.fill("[name=subject]", "Order")
	b.do(chromedp.SendKeys(chromedp.CSS("[name=text]"), "Please."))
	b.loads(400, chromedp.Click(chromedp.CSS("form.card button")))
	b.shoot("write")
	b.fill("[name=to]", `"Bob, the builder" <bob@out.example>; carl@out.example`)
	b.click("form.card button")
	b.shows("Message queued for delivery.", "bob@out.example, carl@out.example")

	b.open("/inboxes/" + in.ID + "/settings")
	b.do(chromedp.SetValue(chromedp.CSS("[name=send_policy]"), "approval"))
	b.shoot("inbox-settings")
	b.click("form.card button")
	b.shows("Settings saved.", "Needs approval")

	b.open("/messages/" + code.ID)
	b.do(chromedp.Click(chromedp.CSS(".sure summary")))
	b.shoot("message-delete")
	b.click(".sure form button")
	b.shows("Message deleted")
	b.open("/inboxes/" + in.ID + "/settings")
	b.do(chromedp.Click(chromedp.CSS("section .sure summary")))
	b.shoot("inbox-delete")
	b.click("section .sure form button")
	b.shows("Inbox deleted", "No inboxes yet")
}

// framed fails unless the document in the page's first frame holds these.
func (b *tab) framed(t *testing.T, texts ...string) {
	t.Helper()
	body := b.site.visitAsUser(t).get(b.attribute("iframe", "src")).want(t, 200).body
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the frame has no %q:\n%s", text, body)
		}
	}
}

// row follows the link of a row to its own page, as on a narrow window: on a wide
// one a click opens the message beside the list.
func (b *tab) row(css string) {
	b.t.Helper()
	b.open(strings.TrimPrefix(b.eval("document.querySelector(`"+css+"`).href"), b.site.url))
}

func (b *tab) attribute(css, name string) string {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.querySelector('"+css+"').getAttribute('"+name+"')"))
	must(b.t, err)
	return v
}

// waits waits until the script is true.
func (b *tab) waits(script string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](script, chromedp.WithPollingTimeout(patience)))
	if err != nil {
		b.t.Fatalf("%s never came true: %v\n%s", script, err, b.text("main"))
	}
}
