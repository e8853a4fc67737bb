package message

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
)

// Short texts that mean something to the readers of plain text, of HTML and of
// header fields.
var (
	textUnits   = []string{":", "From:", "-", " 123456", "é", "\n", "> ", "a", " ", "code ", "https://a.example/" + lineartest.Number + " ", lineartest.Letter, "("}
	htmlUnits   = []string{"x", "<p>", "</div>", "<a href=https://a.example/" + lineartest.Number + ">", "<style>", "<b style='", "<div class=gmail_quote>", ".a" + lineartest.Number + "{color:red}", "<!--", "&amp;", "<blockquote type=cite>"}
	headerUnits = []string{`"`, "(", "<", ",", "=?utf-8?q?a?=", "a" + lineartest.Number + "@b.example", "\r\n ", "a", " ", ";", "é", "="}
	fieldUnits  = []string{"(", "<a" + lineartest.Number + "@b.example>", "\xe9", lineartest.Letter, "\r\n ", "a", `"`}
)

// linearReaders are all exported functions of the package that read mail.
func linearReaders() []lineartest.Reader {
	readers := []lineartest.Reader{
		{Name: "ReplyText", Units: textUnits, Read: func(s string) { ReplyText(s) }},
		{Name: "Extract text", Units: textUnits, Read: func(s string) { Extract("Your code", s, "") }},
		{Name: "Extract html", Units: htmlUnits, Read: func(s string) { Extract("", "", s) }},
		{Name: "Extract text-in-html", Units: textUnits, Read: func(s string) { Extract("", "", "<p>"+s) }},
		{Name: "Message.Derive", Units: htmlUnits, Read: func(s string) { (&Message{HTML: s}).Derive(DefaultLimits()) }},
		{Name: "HTMLToText", Units: htmlUnits, Read: func(s string) { HTMLToText(s) }},
		{Name: "HTMLReplyText", Units: htmlUnits, Read: func(s string) { HTMLReplyText(s) }},
		{Name: "HTMLVisibleText style", Units: []string{"a", ".a" + lineartest.Number + "{display:none}", "/*", "@media{", "}", ";", `"`, "\\"}, Read: func(s string) { HTMLVisibleText("<style>" + s + "</style><p class=a>x") }},
		{Name: "HTMLVisibleText attribute", Units: []string{"a", "color:red;", "font-size:0;", "/*", "(", " ", "&amp;", `\`}, Read: func(s string) { HTMLVisibleText("<p style=\"" + s + "\" class=\"" + s + "\">x") }},
		{Name: "Snippet", Units: textUnits, Read: func(s string) { Snippet(s) }},
		{Name: "FoldForSearch", Units: []string{"a", "é", "\u0301", "字", "가", " ", "ﬃ", "\xff"}, Short: 4, Read: func(s string) { FoldForSearch(s) }},
		{Name: "NormalizeSubject", Units: []string{"Re: ", "Re[2]:", "Fwd: ", "[", "]", " ", "a", "回复："}, Read: func(s string) { NormalizeSubject(s) }},
		{Name: "HasReplyMark", Units: []string{"Re: ", "Re[2]:", "[", " ", "a", "回复："}, Read: func(s string) { HasReplyMark(s) }},
		{Name: "ReplySubject", Units: []string{"Re: ", "a", " "}, Read: func(s string) { ReplySubject(s) }},
		{Name: "ForwardSubject", Units: []string{"Fwd: ", "a", " "}, Read: func(s string) { ForwardSubject(s) }},
		{Name: "ForwardText", Units: textUnits[:4], Read: func(s string) { ForwardText(s, ForwardedHeader{Subject: s}, s) }},
		{Name: "ForwardHTML", Units: htmlUnits[:6], Read: func(s string) { ForwardHTML(s, ForwardedHeader{Subject: s}, s) }},
		{Name: "RewriteLinks", Units: htmlUnits, Read: func(s string) { RewriteLinks(s, func(string) string { return "https://b.example/" }, "") }},
		{Name: "FoldAddress", Units: []string{"A", "é", "\xff", "\u212a"}, Read: func(s string) { FoldAddress(s) }},
		{Name: "MatchAddress", Units: []string{"a", "b", "@"}, Read: func(s string) { MatchAddress("*a*b*@*.example", s) }},
		{Name: "ParseMailbox", Units: headerUnits, Read: func(s string) { _, _ = ParseMailbox(s) }},
		{Name: "ParseMailbox domain", Units: []string{"a", lineartest.Letter, ".", "-"}, Read: func(s string) { _, _ = ParseMailbox("a@" + s) }},
		{Name: "ValidAddress", Units: []string{"a", lineartest.Letter, ".", "@", `"`}, Read: func(s string) { _ = ValidAddress("a@" + s) }},
		{Name: "ClaimsHost", Units: headerUnits[:6], Read: func(s string) { ClaimsHost(s, "a.example") }},
		{Name: "Message.Automated", Units: headerUnits[:4], Read: func(s string) {
			(&Message{AutoSubmitted: s, Precedence: s, From: &Address{Email: s}}).Automated(false)
		}},
		{Name: "Message.Extract", Units: textUnits[:4], Read: func(s string) { (&Message{Subject: s, Text: s}).Extract(DefaultLimits()) }},
		{Name: "ReadHeader", Units: []string{"a", "\r\n", ":", " ", "x: y\r\n"}, Read: func(s string) { eachField(s, func(Field) {}) }},
		{Name: "Field.Value", Units: fieldUnits, Short: 3, Read: func(s string) { eachField("X: "+s, func(f Field) { f.Value() }) }},
		{Name: "Field.Text", Units: headerUnits, Read: func(s string) { eachField("Subject: "+s, func(f Field) { f.Text() }) }},
		{Name: "Field.Addresses", Units: headerUnits, Read: func(s string) { eachField("From: "+s, func(f Field) { f.Addresses(1000) }) }},
		{Name: "Field.Is", Units: []string{"a", "\xe9", "-"}, Read: func(s string) { eachField(s+": x", func(f Field) { f.Is("subject") }) }},
		{Name: "OpenPart", Units: []string{"a", "=", "\r\n", "--b\r\n"}, Read: func(s string) {
			for _, encoding := range []string{"base64", "quoted-printable", "x-uuencode"} {
				if part, err := OpenPart(strings.NewReader("Content-Transfer-Encoding: "+encoding+"\r\n\r\n"+s), 0, DefaultLimits()); err == nil {
					_, _ = io.Copy(io.Discard, part)
				}
			}
		}},
	}
	readers = append(readers, parseReaders()...)
	return append(readers, reportReaders()...)
}

// eachField reads a header.
func eachField(header string, read func(f Field)) {
	fields, _, _ := ReadHeader(strings.NewReader(header+"\r\n\r\n"), DefaultLimits())
	for _, f := range fields {
		read(f)
	}
}

func parseMail(mail string) { _, _ = Parse(strings.NewReader(mail), DefaultLimits()) }

// parseReaders are Parse with each header field, transfer encoding and charset.
func parseReaders() (readers []lineartest.Reader) {
	for _, name := range []string{"To", "Subject", "Content-Type"} {
		readers = append(readers, lineartest.Reader{
			Name: "Parse " + name, Units: headerUnits, Read: func(s string) { parseMail(name + ": " + s + "\r\n\r\nx") },
		})
	}
	for _, name := range []string{
		"From", "Cc", "Bcc", "Reply-To", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted", "Precedence", "List-Id",
		"Content-Transfer-Encoding", "Content-Disposition", "Content-ID", "X-Other",
	} {
		readers = append(readers, lineartest.Reader{
			Name: "Parse " + name, Units: fieldUnits, Short: 3, Read: func(s string) { parseMail(name + ": " + s + "\r\n\r\nx") },
		})
	}
	for name, field := range map[string]string{
		"type-parameter": "Content-Type: text/plain; charset=", "disposition-parameter": "Content-Disposition: attachment; filename*0*=",
	} {
		readers = append(readers, lineartest.Reader{
			Name: "Parse " + name, Units: []string{"a", ";", `"`, "%41", "; filename*" + lineartest.Number + "=x", "\\", "=?utf-8?q?a?=", "'"},
			Read: func(s string) { parseMail(field + s + "\r\n\r\nx") },
		})
	}
	bodyUnits := []string{"a", "\r\n", "=", "M!!a*\n", "=41", " ", "-", "\xe9"}
	for _, encoding := range []string{"7bit", "base64", "quoted-printable", "x-uuencode"} {
		readers = append(readers, lineartest.Reader{
			Name: "Parse " + encoding, Units: bodyUnits, Short: 4,
			Read: func(s string) { parseMail("Content-Transfer-Encoding: " + encoding + "\r\n\r\nbegin 644 x\n" + s) },
		})
	}
	for _, charset := range []string{"utf-8", "iso-2022-jp", "utf-7", "koi8-r", "gb18030", "utf-16"} {
		readers = append(readers, lineartest.Reader{
			Name: "Parse " + charset, Units: []string{"a", "\xe9", "\x1b$B", "+AGE-", "\xff"}, Short: 4,
			Read: func(s string) { parseMail("Content-Type: text/plain; charset=" + charset + "\r\n\r\n" + s) },
		})
	}
	return append(readers,
		lineartest.Reader{Name: "Parse header", Units: []string{"a", ":", "\r\n", " ", "Subject: \xe9\r\n", "To: a@b.example\r\n", "From: x\r\n"}, Read: parseMail},
		lineartest.Reader{
			Name: "Parse multipart", Units: []string{"a", "\r\n", "--b\r\n", "--b--\r\n", "Content-Type: a/b\r\n", "Content-Type: multipart/mixed; boundary=b\r\n\r\n", "--"},
			Read: func(s string) { parseMail("Content-Type: multipart/mixed; boundary=b\r\n\r\n" + s) },
		},
		lineartest.Reader{
			Name: "Parse flowed", Units: []string{"a", " ", "\r\n", ">", "-- \r\n"},
			Read: func(s string) { parseMail("Content-Type: text/plain; format=flowed; delsp=yes\r\n\r\n" + s) },
		},
		lineartest.Reader{
			Name: "Parse html", Units: []string{"<", "<meta charset=", "a", "\xe9", "=\""},
			Read: func(s string) { parseMail("Content-Type: text/html\r\n\r\n" + s) },
		},
	)
}

// reportReaders are ReadReport with each part that a report may have.
func reportReaders() (readers []lineartest.Reader) {
	status := []string{"a", "\r\n", " ", "Final-Recipient: rfc822; a" + lineartest.Number + "@b.example\r\n", "Status: 5.1.1\r\n", "<a" + lineartest.Number + "@b.example>", "550 5.1.1 ", ":", "\r\n\r\n"}
	text := append([]string{"user unknown ", "could not be delivered "}, status...)
	for name, place := range map[string]struct {
		units []string
		mail  string
	}{
		"text":            {text, "Subject: Undelivered Mail\r\n\r\n"},
		"html":            {[]string{"a", "<p>", "a@b.example", "550 5.1.1", "<br>"}, "Subject: Undelivered Mail\r\nContent-Type: text/html\r\n\r\n"},
		"delivery-status": {status, reportMailOf("message/delivery-status")},
		"feedback-report": {status, reportMailOf("message/feedback-report")},
		"original":        {status, reportMailOf("message/rfc822")},
		"headers":         {status, reportMailOf("text/rfc822-headers")},
		"subject":         {fieldUnits, "Subject: Undelivered "},
		"from":            {fieldUnits, "From: "},
		"return-path":     {fieldUnits, "Return-Path: "},
		"failed":          {fieldUnits, "X-Failed-Recipients: "},
	} {
		readers = append(readers, lineartest.Reader{
			Name: "ReadReport " + name, Units: place.units, Short: 4,
			Read: func(s string) { _, _ = ReadReport(strings.NewReader(place.mail+s), true, DefaultLimits()) },
		})
	}
	return readers
}

func reportMailOf(kind string) string {
	return fmt.Sprintf("From: mailer-daemon@a.example\r\nContent-Type: multipart/report; boundary=b\r\n\r\n--b\r\n\r\nIt failed.\r\n--b\r\nContent-Type: %s\r\n\r\n", kind)
}

// notReadingMail are the other exported functions.
var notReadingMail = map[string]string{
	"DefaultLimits":    "takes nothing",
	"LikePattern":      "reads what a caller of the API gives, which the contract bounds",
	"FieldError.Error": "shows an error",
	"Outgoing.WriteTo": "writes mail",
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), notReadingMail)
}
