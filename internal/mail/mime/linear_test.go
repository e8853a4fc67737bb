package mime

import (
	"io"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/lineartest"
	"github.com/postroom/postroom/internal/mail"
)

// Short texts that mean something to the readers of header fields.
var (
	headerUnits = []string{`"`, "(", "<", ",", "=?utf-8?q?a?=", "a" + lineartest.Number + "@b.example", "\r\n ", "a", " ", ";", "é", "="}
	fieldUnits  = []string{"(", "<a" + lineartest.Number + "@b.example>", "\xe9", lineartest.Letter, "\r\n ", "a", `"`}
)

// linearReaders are the exported functions that read mail.
func linearReaders() []lineartest.Reader {
	readers := []lineartest.Reader{
		{Name: "Message.Automated", Units: headerUnits[:4], Read: func(s string) {
			(&Message{AutoSubmitted: s, Precedence: s, Addresses: mail.Addresses{From: &mail.Address{Email: s}}}).Automated(false)
		}},
		{Name: "ReadHeader", Units: []string{"a", "\r\n", ":", " ", "x: y\r\n"}, Read: func(s string) { eachField(s, func(Field) {}) }},
		{Name: "Field.Value", Units: fieldUnits, Short: 3, Read: func(s string) { eachField("X: "+s, func(f Field) { f.Value() }) }},
		{Name: "Field.Text", Units: headerUnits, Read: func(s string) { eachField("Subject: "+s, func(f Field) { f.Text() }) }},
		{Name: "Field.Addresses", Units: headerUnits, Read: func(s string) { eachField("From: "+s, func(f Field) { f.Addresses(1000) }) }},
		{Name: "Field.Is", Units: []string{"a", "\xe9", "-"}, Read: func(s string) { eachField(s+": x", func(f Field) { f.Is("subject") }) }},
		{Name: "OpenPart", Units: []string{"a", "=", "\r\n", "--b\r\n"}, Read: func(s string) {
			for _, encoding := range []string{"base64", "quoted-printable", "x-uuencode"} {
				if part, err := OpenPart(strings.NewReader("Content-Transfer-Encoding: "+encoding+"\r\n\r\n"+s), 0, mail.DefaultLimits()); err == nil {
					_, _ = io.Copy(io.Discard, part)
				}
			}
		}},
		{Name: "Field.Unfolded", Units: fieldUnits, Short: 3, Read: func(s string) { eachField("X: "+s, func(f Field) { f.Unfolded() }) }},
		{Name: "Fields", Units: []string{"a", "\r\n", ":", " ", "x: y\r\n"}, Read: func(s string) { Fields([]byte(s), func(Field) {}) }},
		{Name: "Field.IsAutoReply", Units: fieldUnits, Short: 3, Read: func(s string) { eachField("X-Autoreply: "+s, func(f Field) { f.IsAutoReply() }) }},
		{Name: "IsAutoReplySubject", Units: []string{"a", "É", "\xff", " "}, Read: func(s string) { IsAutoReplySubject(s) }},
		{Name: "FirstToken", Units: []string{"a", ";", "(", " "}, Read: func(s string) { FirstToken(s) }},
		{Name: "IsFieldName", Units: []string{"a", ":", "\xe9"}, Read: func(s string) { IsFieldName([]byte(s)) }},
		{Name: "IsHeaderLine", Units: []string{"a", ":", " "}, Read: func(s string) { IsHeaderLine([]byte(s)) }},
		{Name: "IsMediaType", Units: []string{"a", "/", ";"}, Read: func(s string) { IsMediaType(s) }},
		{Name: "LongParts", Units: []string{"a", "\r\n", "--b\r\n", " ", "a:"}, Read: func(s string) {
			_, _ = LongParts(strings.NewReader("Content-Type: multipart/mixed; boundary=b\r\n\r\n"+s), mail.DefaultLimits(), 998)
		}},
		{Name: "DecodeBody", Units: []string{"a", "=", "\r\n", "=41"}, Read: func(s string) {
			for _, encoding := range []string{"base64", "quoted-printable", "x-uuencode"} {
				_, _ = io.Copy(io.Discard, DecodeBody(strings.NewReader(s), encoding))
			}
		}},
		{Name: "MessageIDs", Units: fieldUnits, Short: 4, Read: func(s string) { MessageIDs(s) }},
		{Name: "ValidMessageID", Units: []string{"a", "<", ">"}, Read: func(s string) { ValidMessageID("<" + s + ">") }},
		{Name: "ParseAddressList", Units: headerUnits, Read: func(s string) { ParseAddressList(s, 1000) }},
		{Name: "SafeFilename", Units: []string{"a", "/", ".", "é", "\u202e"}, Short: 4, Read: func(s string) { SafeFilename(s) }},
		{Name: "ToUTF8", Units: []string{"a", "\xe9", "\x1b$B", "\xff"}, Read: func(s string) { ToUTF8([]byte(s), "") }},
		{Name: "ValidUTF8", Units: []string{"a", "\xe9", "\x00"}, Read: func(s string) { ValidUTF8([]byte(s)) }},
		{Name: "ParseMedia", Units: headerUnits, Short: 4, Read: func(s string) { ParseMedia(s) }},
		{Name: "MediaType.Raw", Units: headerUnits, Short: 4, Read: func(s string) {
			m := ParseMedia("a/b;" + s)
			m.Raw("charset")
		}},
		{Name: "Visit", Units: []string{"a", "\r\n", "--b\r\n", "=", "\xe9"}, Read: func(s string) {
			all := Visitor{Field: func(Field) {}, Wants: func(string) bool { return true }, Text: func(string, string) {}, MaxText: 64 << 10}
			_ = Visit(strings.NewReader("Content-Type: multipart/mixed; boundary=b\r\n\r\n"+s), mail.DefaultLimits(), all)
		}},
	}
	return append(readers, parseReaders()...)
}

// eachField reads a header.
func eachField(header string, read func(f Field)) {
	fields, _, _ := ReadHeader(strings.NewReader(header+"\r\n\r\n"), mail.DefaultLimits())
	for _, f := range fields {
		read(f)
	}
}

func parseMail(raw string) { _, _ = Parse(strings.NewReader(raw), mail.DefaultLimits()) }

// parseReaders are Parse with each header field, transfer encoding and charset.
func parseReaders() (readers []lineartest.Reader) {
	for _, name := range []string{"To", "Subject", "Content-Type"} {
		readers = append(readers, lineartest.Reader{
			Name: "Parse " + name, Units: headerUnits, Read: func(s string) { parseMail(name + ": " + s + "\r\n\r\nx") },
		})
	}
	for _, name := range []string{
		"From", "Cc", "Bcc", "Reply-To", "Date", "Message-ID", "In-Reply-To", "References", "Auto-Submitted", "Precedence", "List-Id", "X-Autoreply",
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
		lineartest.Reader{
			Name: "Parse related", Units: []string{"cid:", "a", "%41", "&amp;", ":", "\""},
			Read: func(s string) {
				parseMail("Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n" + s +
					"\r\n--b\r\nContent-Type: image/png\r\nContent-ID: <x>\r\nContent-Disposition: attachment\r\n\r\n")
			},
		},
		lineartest.Reader{
			Name: "Parse a header that does not end", Units: []string{"a", "a:\r\n", "b\r\n", "Subject: x\r\n", "X-A: b\r\n", "To: c\r\n", "--b\r\n", " "},
			Read: func(s string) { parseMail("Content-Type: multipart/mixed; boundary=b\r\nodd\r\n" + s) },
		},
	)
}

func TestReadersAreLinear(t *testing.T) { lineartest.Check(t, linearReaders()) }

func TestLinearReadersAreComplete(t *testing.T) {
	t.Parallel()
	lineartest.Complete(t, linearReaders(), nil)
}
