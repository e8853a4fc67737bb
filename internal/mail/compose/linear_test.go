package compose

import (
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/internal/mail/mime"
)

// linearReaders are the exported functions that read mail.
func linearReaders() []lineartest.Reader {
	text := []string{":", "From:", "-", " 123456"}
	html := []string{"x", "<p>", "</div>", "<a href=https://a.example/" + lineartest.Number + ">", "<style>", "<b style='", "<div class=gmail_quote>", ".a" + lineartest.Number + "{color:red}", "<!--", "&amp;", "<blockquote type=cite>"}
	return []lineartest.Reader{
		{Name: "ForwardText", Units: text, Read: func(s string) { ForwardText(s, ForwardedHeader{Subject: s}, s) }},
		{Name: "ForwardHTML", Units: html[:6], Read: func(s string) { ForwardHTML(s, ForwardedHeader{Subject: s}, s) }},
		{Name: "ReadRaw", Units: []string{"From: a@b.example\r\n", "X-Postroom-Tag: a=b\r\n", "From: <", "a@b.example,", "x\r\n", "\r"}, Read: func(s string) { _, _ = ReadRaw(strings.NewReader(s)) }},
		{Name: "ReadRaw long lines", Units: []string{"x", " ", "\r\n", "=", "--b\r\n", "\r\n\r\n"}, Read: func(s string) {
			_, _ = ReadRaw(strings.NewReader("From: a@b.example\r\nX-A: " + s + "\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n" + strings.Repeat("x", maxLine+1) + s))
		}},
		{Name: "Raw.Remove", Units: []string{"X-A: b\r\n", "Authentication-Results: a.example; x\r\n", "x\r\n", " ", "\r"}, Read: func(s string) {
			(&Raw{header: []byte(s)}).Remove(func(f mime.Field) bool { return f.Is("x-a") })
		}},
		{Name: "RewriteLinks", Units: html, Read: func(s string) { RewriteLinks(s, func(string) string { return "https://b.example/" }, "") }},
	}
}

// notReadingMail are the other exported functions.
var notReadingMail = map[string]string{
	"FieldError.Error": "shows an error",
	"Outgoing.WriteTo": "writes mail",
	"Raw.Add":          "writes fields",
	"Raw.Reader":       "writes mail",
	"Raw.WriteTo":      "writes mail",
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), notReadingMail)
}
