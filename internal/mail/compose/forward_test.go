package compose

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mailtest"
	"github.com/postroom/postroom/internal/mail/reply"
)

func TestForward(t *testing.T) {
	t.Parallel()
	h := ForwardedHeader{
		From: mail.Address{Name: "Ann <script>", Email: "a@b.c"}, To: []mail.Address{{Email: "d@e.f"}, {Name: "Bob", Email: "g@h.i"}},
		Date: mailtest.Date, Subject: "A & B\r\nBcc: x@y.z",
	}
	text := ForwardText("See below.\n", h, "Hello")
	want := "See below.\n\n---------- Forwarded message ---------\nFrom: Ann <script> <a@b.c>\nDate: Fri, 13 Nov 2026 09:14:20 +0000\n" +
		"Subject: A & B  Bcc: x@y.z\nTo: d@e.f, Bob <g@h.i>\n\nHello"
	if text != want {
		t.Errorf("text: got %q, want %q", text, want)
	}
	if got := reply.Text(text, nil); got != "See below." {
		t.Errorf("the note of a forward: got %q", got)
	}
	html := ForwardHTML("<p>See below.</p>", h, "<!doctype html><html><head><title>T</title><style>p{color:red}</style><meta charset=x></head><body class=x><p>Hello</p><script>x()</script></body></html>")
	for _, part := range []string{"<p>See below.</p>", "<b>From:</b> Ann &lt;script&gt; &lt;a@b.c&gt;<br>", "A &amp; B", "<style>p{color:red}</style>", "<p>Hello</p>"} {
		if !strings.Contains(html, part) {
			t.Errorf("HTML lacks %q: %s", part, html)
		}
	}
	for _, part := range []string{"<html", "<body", "<head", "</body", "doctype", "<title", "x()", "<meta"} {
		if strings.Contains(html, part) {
			t.Errorf("HTML has %q: %s", part, html)
		}
	}
}
