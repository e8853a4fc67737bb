package safety_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
)

// TestOrdinaryMail reads 300 newsletters and receipts, made of the layouts that programs for
// newsletters use. None gets a warning for hidden text, and at most one in twenty a notice.
func TestOrdinaryMail(t *testing.T) {
	t.Parallel()
	notices, previews := 0, 0
	for i := range uint64(300) {
		n := newsletter{rand.New(rand.NewPCG(i, 43)), i}
		text := ""
		if i%3 == 0 {
			text = n.text()
		}
		d := read(t, n.subject(), text, n.html())
		s := d.Safety
		s.Unauthenticated = false
		s.Rate()
		if s.Level == mail.SafetyWarning {
			t.Errorf("mail %d has a warning: %+v", i, s)
		}
		if s.Hides != mail.SafetyNone {
			notices++
			t.Logf("mail %d: %+v", i, s)
		}
		if s.HiddenText != "" {
			previews++
		}
		if !strings.Contains(d.Text, "Tuesday") && text == "" {
			t.Errorf("mail %d has lost its text: %q", i, d.Text)
		}
		if s.TextDiffers {
			t.Errorf("mail %d: the text %q differs from %q", i, text, d.Snippet)
		}
	}
	t.Logf("%d of 300 have hidden text, as a preview line; %d get a notice for it", previews, notices)
	if notices > 15 {
		t.Errorf("%d of 300 get a notice", notices)
	}
}

// newsletter makes one mail.
type newsletter struct {
	r *rand.Rand
	i uint64
}

func (n newsletter) one(of ...string) string { return of[n.r.IntN(len(of))] }

func (n newsletter) subject() string {
	return []string{"Your receipt", "News of the week", "Autumn sale", "Your invitation"}[n.i%4] + fmt.Sprintf(" %d", n.i)
}

func (n newsletter) text() string {
	return "View in your browser: https://shop.example/v/1\n\nHello Anna,\n\nyour order 10" + fmt.Sprint(n.i) + " arrives on Tuesday.\n\nUnsubscribe: https://shop.example/u\n"
}

func (n newsletter) html() string {
	dark := n.one("#222222", "#003366", "#7a1f3d", "#0b5cff")
	var b strings.Builder
	b.WriteString(n.one("<!DOCTYPE html>", `<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">`, ""))
	b.WriteString(`<html><head><meta charset="utf-8"><title>` + n.one("", n.subject(), "Newsletter") + `</title>`)
	b.WriteString(`<!--[if mso]><xml><o:OfficeDocumentSettings><o:AllowPNG/></o:OfficeDocumentSettings></xml><![endif]--><style>
		#outlook a{padding:0}.ReadMsgBody{width:100%}img{border:0;line-height:100%;outline:none}table,td{border-collapse:collapse}
		.button a{color:#ffffff!important;background:` + dark + `}h2{color:` + dark + `}a[x-apple-data-detectors]{color:inherit!important}
		u + .body .gmail-only{display:none}.mobile-only{display:none}
		@media only screen and (max-width:600px){.stack{display:block!important;width:100%!important}.desktop-only{display:none!important}.mobile-only{display:block!important}}
		@media (prefers-color-scheme:dark){.body{background:#111!important;color:#fff!important}.light-logo{display:none!important}}
		@media print{.no-print{display:none}}</style></head>`)
	b.WriteString(`<body class="body" style="margin:0;padding:0;` + n.one("background-color:#f4f4f7", "background:#ffffff", "word-spacing:normal") + `" bgcolor="#f4f4f7">`)
	if n.r.IntN(10) > 1 {
		b.WriteString(n.one(
			`<div style="display:none;font-size:1px;color:#ffffff;line-height:1px;max-height:0px;max-width:0px;opacity:0;overflow:hidden;">`,
			`<div class="preheader" style="color:transparent;display:none!important;height:0;mso-hide:all;visibility:hidden">`,
			`<div style="font-size:0;line-height:1px;mso-line-height-rule:exactly;display:none;max-width:0;max-height:0;opacity:0;overflow:hidden;mso-hide:all">`) +
			n.one("Everything about your order, and more.", "Save up to 40 percent until Sunday evening, only for members", "We have something for you: news, dates, and a small gift") +
			strings.Repeat(n.one("&#847;&zwnj;&nbsp;", "&zwnj;&nbsp;", "&#8199;&#65279;&#847; ", ""), 60) + "</div>")
	}
	b.WriteString(`<table role="presentation" width="100%" cellpadding="0" cellspacing="0"><tr><td align="center" style="font-size:0;padding:24px 0">
		<!--[if mso | IE]><table width="600"><tr><td style="line-height:0px;font-size:0px"><![endif]-->
		<table width="600" style="max-width:600px" bgcolor="#ffffff"><tr><td bgcolor="` + dark + `" style="background-color:` + dark + `;padding:20px">
		<p style="color:#ffffff;font-size:22px;margin:0">` + n.one("Shop", "The Weekly", "Harbour Bank") + `</p></td></tr>
		<tr><td style="padding:10px 25px;font-family:Helvetica,Arial,sans-serif;font-size:15px;line-height:22px;color:#333333"><p>Hello Anna,</p><p>your order 10` + fmt.Sprint(n.i) + ` arrives on Tuesday.</p></td></tr>`)
	for range n.r.IntN(5) {
		b.WriteString(n.one(
			`<tr><td style="padding:10px"><h2 style="font-size:18px">`+n.one("New in the shop", "Reading of the month", "Your points")+`</h2><p style="font-size:14px;color:#555">A few lines about it, with all that matters.</p></td></tr>`,
			`<tr><td class="button" align="center" style="padding:12px"><table><tr><td bgcolor="`+dark+`" style="border-radius:6px"><a href="https://click.mailer.example/c/8842" style="display:inline-block;padding:12px 26px;font-size:15px;color:#ffffff;text-decoration:none">See the order</a></td></tr></table></td></tr>`,
			`<tr><td style="background:#ffe url(https://img.shop.example/hero.jpg) center/cover"><!--[if gte mso 9]><v:rect fill="true"><v:textbox inset="0,0,0,0"><![endif]--><p style="font-size:28px;color:#444">Autumn</p><!--[if gte mso 9]></v:textbox></v:rect><![endif]--></td></tr>`,
			`<tr><td style="background-image:linear-gradient(90deg,#0b5cff,#7a1f3d);padding:30px"><p style="color:#fff;font-size:20px">Members only</p></td></tr>`,
			`<tr><td class="desktop-only"><p style="font-size:14px">Dates and places</p></td></tr><tr class="mobile-only"><td><p style="font-size:14px">Dates and places</p></td></tr>`,
			`<tr><td height="1" style="font-size:1px;line-height:1px;height:1px;overflow:hidden;background:#ddd">&nbsp;</td></tr>`,
			`<tr><td><img src="https://img.shop.example/a.png" alt="A red coat" width="260" style="display:block"></td></tr>`,
			`<tr><td><ul style="font-size:14px;padding-left:20px"><li>One coat</li><li>Two shirts</li></ul><table width="100%"><tr><td style="font-size:14px">Total</td><td align="right" style="font-size:14px">84.20</td></tr></table></td></tr>`))
	}
	b.WriteString(`<tr><td style="padding:20px;font-size:11px;color:` + n.one("#999999", "#8a8f98", "#b0b0b0") + `;text-align:center">` +
		n.one(`Shop Ltd, 1 Harbour Street. <a href="https://shop.example/u" style="color:inherit">Unsubscribe</a>`,
			`You receive this mail because you ordered. <a style="color:#999" href="https://shop.example/p">Preferences</a>`) + `</td></tr></table></td></tr></table>`)
	if n.r.IntN(30) == 0 {
		b.WriteString(`<span style="display:none;color:#fff;font-size:1px">id-` + fmt.Sprint(n.r.IntN(1e6)) + `</span>`)
	}
	b.WriteString(`<img src="https://open.mailer.example/o.gif" width="1" height="1" alt=""></body></html>`)
	return b.String()
}
