package web_test

import (
	"html"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

// droppedHTML are kinds of HTML that a preview cannot show and that some mail
// programs, or programs that read mail, do.
var droppedHTML = []struct{ what, source string }{
	{"<noscript>", `<noscript>SECRET</noscript>`},
	{"<!--[if]>", `<!--[if mso]><p>SECRET</p><![endif]-->`},
	{"<svg>", `<svg><text y="20">SECRET</text></svg>`},
	{"<textarea>", `<textarea>SECRET</textarea>`},
	{"<select>", `<select><option>SECRET</option></select>`},
	{"<input>", `<input value="SECRET">`},
	{"<video>", `<video>SECRET</video>`},
	{"<object>", `<object>SECRET</object>`},
	{"<canvas>", `<canvas>SECRET</canvas>`},
	{"<math>", `<math><mtext>SECRET</mtext></math>`},
	{"<iframe>", `<iframe srcdoc="SECRET"></iframe>`},
	{"<xmp>", `<xmp>SECRET</xmp>`},
	{"<title>", `<title>SECRET</title>`},
}

// What a preview cannot show is not sent: it is gone from the draft, the person who
// approves it reads what is gone, and the bytes that arrive are those of the draft.
func TestHiddenTextIsNotSent(t *testing.T) {
	s := openSite(t)
	in := s.newInbox(t, "buyer", gen.SendPolicyApproval)
	v := s.visitAsUser(t)
	mx := smtptest.NewMX(t, smtptest.MXConfig{})
	for _, kind := range droppedHTML {
		s.clock.Add(time.Minute) // the limit of calls starts again
		m := mailTo("ann@out.example", kind.what, "")
		m.Text = gen.OptNilString{}
		m.HTML = gen.NewOptNilString(`<p>Please <b>confirm</b>.</p>` + kind.source + `<p>Thank you.</p>`)
		const clean = `<p>Please <b>confirm</b>.</p><p>Thank you.</p>`
		d := s.hold(t, in, m)
		if d.HTML.Value != clean {
			t.Errorf("%s: the draft is %s", kind.what, d.HTML.Value)
		}
		page := v.get("/approvals/"+d.ID).want(t, 200)
		page.has(t, html.EscapeString("Not sent: "+kind.what), "SECRET")
		if at, button := strings.Index(page.body, "Not sent: "), strings.Index(page.body, "Approve and send"); button < at || strings.Contains(page.body[at:button], "</aside>") {
			t.Errorf("%s: the warning is not beside the button", kind.what)
		}
		if frame := v.get("/approvals/"+d.ID+"/view").want(t, 200); !strings.Contains(frame.body, "<body>"+clean+"</body>") || strings.Contains(frame.body, "SECRET") {
			t.Errorf("%s: the preview is %s", kind.what, frame.body)
		}
		v.post("/approvals/"+d.ID+"/approve", []string{"version", "1"}).want(t, 303)
		s.deliverTo(t, mx)
		arrived := mx.Wait(t, 1)
		raw := string(arrived[len(arrived)-1].Data)
		if text, sent := bodies(t, raw); sent != clean || strings.Contains(text+raw, "SECRET") || !strings.Contains(raw, "Subject: "+kind.what) {
			t.Errorf("%s: what arrived is %s", kind.what, raw)
		}
	}
	if n := len(mx.Messages()); n != len(droppedHTML) || n != 13 {
		t.Errorf("%d messages arrived", n)
	}
}

// Text that readers do not see is shown to the person who approves it, with a mark.
func TestHiddenTextIsShownToTheApprover(t *testing.T) {
	s := openSQLite(t)
	m := mailTo("ann@out.example", "Order", "20 chairs")
	m.HTML = gen.NewOptNilString(`<style>@media (max-width:600px){.m{display:none}}</style><p>20 chairs</p><p style="display:none">and 1</p>` +
		`<p style="font-size:1px">and 2</p><p style="color:#fffffe">and 3</p><p class="m">and 4</p><p style="text-indent:-999px">and 5</p>` +
		`<a href="https://evil.example/?q">www.bank.example</a>`)
	d := s.hold(t, s.newInbox(t, "buyer", gen.SendPolicyApproval), m)
	v := s.visitAsUser(t)
	v.get("/approvals/"+d.ID).want(t, 200).has(t, "Hidden text (display): “and 1”", "Hidden text (size): “and 2”", "Hidden text (colour): “and 3”",
		"Hidden text (display, for some readers): “and 4”", "Hidden text (off screen): “and 5”", "A link says www.bank.example and leads to https://evil.example/?q.",
		"neither written to nor received mail from ann@out.example", "<summary>Links</summary>", "20 chairs\nand 1\nand 2\nand 3\nand 4\nand 5\nwww.bank.example")
	frame := v.get("/approvals/"+d.ID+"/view").want(t, 200)
	frame.has(t, "hidden (display):</b> and 1</span>", "hidden (size):</b> and 2</span>", "hidden (colour):</b> and 3</span>",
		"hidden (display, for some readers):</b> and 4</span>", "hidden (off screen):</b> and 5</span>", "(leads to evil.example)")
	for _, hides := range []string{"display:none", "@media", "-999px"} {
		if strings.Contains(frame.body, hides) {
			t.Errorf("the preview has %s:\n%s", hides, frame.body)
		}
	}
}

// deliverTo runs the queue of the site until nothing is due. Mail to out.example goes
// to mx.
func (s *site) deliverTo(t *testing.T, mx *smtptest.MX) {
	t.Helper()
	receiver, err := inbound.NewReceiver(inbound.ReceiverConfig{Store: s.store, Domain: storetest.Domain, TempDir: t.TempDir(), Now: s.clock.Now})
	must(t, err)
	q, err := queue.New(queue.Config{
		Store: s.store, Local: receiver, Domain: storetest.Domain, HELO: "mx." + storetest.Domain, MXPort: mx.Port(),
		Resolver: outbound.NewResolver(smtptest.NewDNS(t, smtptest.Zones{}.Domain("out.example", mx.IP()))),
		Guard:    netguard.New(netguard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), Now: s.clock.Now,
	})
	must(t, err)
	defer q.Close()
	for n := 1; n > 0; {
		n, err = q.RunOnce(t.Context())
		must(t, err)
	}
}

// bodies returns the text and HTML of a message with two parts.
func bodies(t *testing.T, raw string) (text, html string) {
	t.Helper()
	m, err := mail.ReadMessage(strings.NewReader(raw))
	must(t, err)
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	must(t, err)
	parts := multipart.NewReader(m.Body, params["boundary"])
	var all [2]string
	for i := range all {
		part, err := parts.NextRawPart()
		must(t, err)
		var body io.Reader = part
		if part.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
			body = quotedprintable.NewReader(part)
		}
		b, err := io.ReadAll(body)
		must(t, err)
		all[i] = strings.TrimSuffix(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n")
	}
	return all[0], all[1]
}
