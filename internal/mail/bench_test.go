package mail_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/cputime"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/internal/mail/extract"
	"github.com/postroom/postroom/internal/mail/mailtest"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/reply"
)

// htmlMail is a message of 50 KB: text, HTML with tables and styles, an image.
func htmlMail() []byte {
	var page strings.Builder
	page.WriteString("<html><head><style>td { padding: 0 }</style></head><body><div style=\"display:none\">Preview 111111</div>" +
		"<p>Your code is <b>482913</b>.</p><a href=\"https://accounts.example.com/verify?token=QmFzZTY0VG9rZW4xMjM0\">Verify your email</a>")
	for i := 0; page.Len() < 30<<10; i++ {
		fmt.Fprintf(&page, "<table width=\"100%%\" style=\"border:0;margin:0 auto\"><tr><td style=\"font-size:0px\"><p style=\"font-size:13px;color:#333333\">Paragraph %d of the newsletter &amp; more</p></td><td><a href=\"https://example.com/news/%d\">Read on</a></td></tr></table>\r\n", i, i)
	}
	page.WriteString("<a href=\"https://example.com/unsubscribe\">Unsubscribe</a></body></html>")
	out := compose.Outgoing{
		Seed: "bench", HeaderID: "<a@example.com>", Date: mailtest.Date, Subject: "Welcome",
		From: mail.Address{Email: "a@example.com"}, To: []mail.Address{{Email: "b@example.com"}},
		Text: strings.Repeat("Read this newsletter in plain text.\n", 100), HTML: page.String(),
		Attachments: []compose.Attachment{{Filename: "a.png", ContentType: "image/png", Content: bytes.Repeat([]byte{1, 2, 3}, 3<<10)}},
	}
	var raw bytes.Buffer
	if _, err := out.WriteTo(&raw); err != nil {
		panic(err)
	}
	return raw.Bytes()
}

// read does what the server does with a received message.
func read(raw []byte) (*mime.Message, mail.Extraction, string, error) {
	m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		return nil, mail.Extraction{}, "", err
	}
	return m, extract.CodesAndLinks(m.Subject, m.Text, m.HTML), reply.Text(m.Text, nil), nil
}

func BenchmarkRead(b *testing.B) {
	for name, raw := range map[string][]byte{"4KB text": mailtest.TextMessage(), "50KB html": htmlMail()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			start := cputime.Used()
			for b.Loop() {
				if _, _, _, err := read(raw); err != nil {
					b.Fatal(err)
				}
			}
			reportCPU(b, start)
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for name, raw := range map[string][]byte{"4KB text": mailtest.TextMessage(), "50KB html": htmlMail()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkExtract(b *testing.B) {
	for name, raw := range map[string][]byte{"4KB text": mailtest.TextMessage(), "50KB html": htmlMail()} {
		m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := cputime.Used()
			for b.Loop() {
				extract.CodesAndLinks(m.Subject, m.Text, m.HTML)
			}
			reportCPU(b, start)
		})
	}
}

// BenchmarkExtractNumbers reads 50 KB of lines with a number each, the worst
// case.
func BenchmarkExtractNumbers(b *testing.B) {
	var lines strings.Builder
	for i := 0; lines.Len() < 50<<10; i++ {
		fmt.Fprintf(&lines, "%d\tyour code %06d is for order %d\n", i, i*7919%1000000, i*31)
	}
	text := lines.String()
	b.ReportAllocs()
	start := cputime.Used()
	for b.Loop() {
		extract.CodesAndLinks("Your codes", text, "")
	}
	reportCPU(b, start)
}

// reportCPU reports the processor time, which does not depend on other load on
// the machine.
func reportCPU(b *testing.B, start time.Duration) {
	b.ReportMetric(float64(cputime.Used()-start)/float64(b.N), "cpu-ns/op")
}

func BenchmarkReplyText(b *testing.B) {
	m, err := mime.Parse(bytes.NewReader(mailtest.TextMessage()), mail.DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		reply.Text(m.Text, nil)
	}
}

func BenchmarkWriteTo(b *testing.B) {
	out := compose.Outgoing{
		Seed: "bench", HeaderID: "<a@example.com>", Date: mailtest.Date, Subject: "Welcome",
		From: mail.Address{Email: "a@example.com"}, To: []mail.Address{{Email: "b@example.com"}},
		Text: strings.Repeat("A line of text.\n", 100), HTML: "<p>A line of HTML.</p>",
	}
	b.ReportAllocs()
	for b.Loop() {
		var raw bytes.Buffer
		if _, err := out.WriteTo(&raw); err != nil {
			b.Fatal(err)
		}
	}
}
