package extract

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
)

func TestDeriveShowsWhatTheReadersFind(t *testing.T) {
	t.Parallel()
	const replyText = "The code is 482913.\n\nOn Mon, 2 Mar 2026 Ann <ann@example.com> wrote:\n> Which code?\n"
	const page = `<p>Your code is <b>735120</b>. <a href="https://a.example/verify/aB3dE5fG7hJ9">Verify</a></p>`
	tests := []struct {
		name, text, html string
		want             Derived
	}{
		{"a text", replyText, "", Derived{Text: replyText, ReplyText: reply.Text(replyText, nil), Snippet: plaintext.Snippet(replyText)}},
		{"only HTML", "", page, Derived{Text: htmltext.Text(page), FromHTML: true, ReplyText: reply.TextOfPage(htmltext.Read(page, 0, htmltext.WithMarks, nil), nil), Snippet: plaintext.Snippet(htmltext.Read(page, 0, htmltext.OnlyVisible, nil).Plain())}},
		{"both", replyText, page, Derived{Text: replyText, ReplyText: reply.Text(replyText, nil), Snippet: plaintext.Snippet(replyText)}},
		{"a blank text beside HTML", " \n", page, Derived{Text: " \n", Snippet: plaintext.Snippet(htmltext.Read(page, 0, htmltext.OnlyVisible, nil).Plain())}},
		{"nothing", "", "", Derived{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.want.Extracted = CodesAndLinks("Sign in", tt.text, tt.html)
			m := &mime.Message{Subject: "Sign in", Text: tt.text, HTML: tt.html}
			got := Derive(m, mail.DefaultLimits())
			tt.want.Safety = got.Safety // its own package tests it
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Reading stops soon after the budget has run out, and keeps what was read.
func TestReadingStopsWithItsBudget(t *testing.T) {
	t.Parallel()
	const unit = "code 482913 promo https://a.example/b\n> From: x\n"
	for name, raw := range map[string]string{
		"text": "Subject: Your code\r\n\r\n" + strings.Repeat(unit, 40_000),
		"HTML": "Subject: Your code\r\nContent-Type: text/html\r\n\r\n" + strings.Repeat("<p>"+unit+"</p>", 40_000),
		"body": "Subject: Your code\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\n" + strings.Repeat("=!a*\r\n", 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lim := mail.DefaultLimits()
			lim.Budget = cpubudget.New(time.Millisecond)
			var m *mime.Message
			var d Derived
			var err error
			begin := time.Duration(0)
			lim.Budget.Run(func() {
				begin = cpubudget.ThreadTime()
				if m, err = mime.Parse(strings.NewReader(raw), lim); err == nil {
					d = Derive(m, lim)
				}
				begin = cpubudget.ThreadTime() - begin
			})
			if err != nil {
				t.Fatal(err)
			}
			if !m.Truncated && !d.Truncated || m.Subject != "Your code" {
				t.Errorf("truncated %t and %t, subject %q", m.Truncated, d.Truncated, m.Subject)
			}
			if d.Extracted.OTP != nil || d.Extracted.ActionLink != nil {
				t.Errorf("a truncated message has the OTP %v and the action link %v", d.Extracted.OTP, d.Extracted.ActionLink)
			}
			t.Logf("read for %v", begin)
		})
	}
}
