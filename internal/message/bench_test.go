package message

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/cputime"
)

// textMail is an everyday mail of 4 KB with a code in it.
func textMail() []byte {
	var b strings.Builder
	b.WriteString("Received: from mail.example.com (mail.example.com [192.0.2.7]) by mx.example.net with ESMTPS id 4f2a91c0b7 for <agent@example.net>; Fri, 13 Nov 2026 09:14:22 +0000\r\n" +
		"DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=example.com; s=s1; h=from:to:subject:date:message-id;\r\n bh=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=; b=" + strings.Repeat("Qm9Yb2R5", 32) + "\r\n" +
		"From: Example Accounts <no-reply@example.com>\r\nTo: Agent Smith <agent@example.net>\r\n" +
		"Subject: Your verification code\r\nDate: Fri, 13 Nov 2026 09:14:20 +0000\r\nMessage-ID: <20261113091420.4f2a91c0b7@example.com>\r\n" +
		"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 7bit\r\n\r\n" +
		"Hello Agent,\r\n\r\nYour verification code is 482913. It is valid for 10 minutes.\r\n\r\n" +
		"You can also follow this link: https://accounts.example.com/verify?token=QmFzZTY0VG9rZW4xMjM0\r\n\r\n")
	for i := 0; b.Len() < 4<<10; i++ {
		fmt.Fprintf(&b, "This is line %d of the text that fills the mail up to its size, as newsletters do.\r\n", i)
	}
	return []byte(b.String())
}

// htmlMail is a mail of 50 KB: text, HTML with tables and styles, a picture.
func htmlMail() []byte {
	var page strings.Builder
	page.WriteString("<html><head><style>td { padding: 0 }</style></head><body><div style=\"display:none\">Preview 111111</div>" +
		"<p>Your code is <b>482913</b>.</p><a href=\"https://accounts.example.com/verify?token=QmFzZTY0VG9rZW4xMjM0\">Verify your email</a>")
	for i := 0; page.Len() < 30<<10; i++ {
		fmt.Fprintf(&page, "<table width=\"100%%\" style=\"border:0;margin:0 auto\"><tr><td style=\"font-size:0px\"><p style=\"font-size:13px;color:#333333\">Paragraph %d of the newsletter &amp; more</p></td><td><a href=\"https://example.com/news/%d\">Read on</a></td></tr></table>\r\n", i, i)
	}
	page.WriteString("<a href=\"https://example.com/unsubscribe\">Unsubscribe</a></body></html>")
	out := Outgoing{
		Seed: "bench", HeaderID: "<a@example.com>", Date: testDate, Subject: "Welcome",
		From: Address{Email: "a@example.com"}, To: []Address{{Email: "b@example.com"}},
		Text: strings.Repeat("Read this newsletter in plain text.\n", 100), HTML: page.String(),
		Attachments: []OutAttachment{{Filename: "a.png", ContentType: "image/png", Content: bytes.Repeat([]byte{1, 2, 3}, 3<<10)}},
	}
	var raw bytes.Buffer
	if _, err := out.WriteTo(&raw); err != nil {
		panic(err)
	}
	return raw.Bytes()
}

// read is what receiving does with a mail.
func read(raw []byte) (*Message, Extracted, string, error) {
	m, err := Parse(bytes.NewReader(raw), DefaultLimits())
	if err != nil {
		return nil, Extracted{}, "", err
	}
	return m, Extract(m.Subject, m.Text, m.HTML), ReplyText(m.Text), nil
}

func BenchmarkRead(b *testing.B) {
	for name, raw := range map[string][]byte{"4KB text": textMail(), "50KB html": htmlMail()} {
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
	for name, raw := range map[string][]byte{"4KB text": textMail(), "50KB html": htmlMail()} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(bytes.NewReader(raw), DefaultLimits()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkExtract(b *testing.B) {
	for name, raw := range map[string][]byte{"4KB text": textMail(), "50KB html": htmlMail()} {
		m, err := Parse(bytes.NewReader(raw), DefaultLimits())
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := cputime.Used()
			for b.Loop() {
				Extract(m.Subject, m.Text, m.HTML)
			}
			reportCPU(b, start)
		})
	}
}

// BenchmarkExtractNumbers takes 50 KB of lines with a number each, which is as
// much work as a text can be.
func BenchmarkExtractNumbers(b *testing.B) {
	var lines strings.Builder
	for i := 0; lines.Len() < 50<<10; i++ {
		fmt.Fprintf(&lines, "%d\tyour code %06d is for order %d\n", i, i*7919%1000000, i*31)
	}
	text := lines.String()
	b.ReportAllocs()
	start := cputime.Used()
	for b.Loop() {
		Extract("Your codes", text, "")
	}
	reportCPU(b, start)
}

// reportCPU adds the processor time, which unlike that of the clock does not
// depend on what else the machine does.
func reportCPU(b *testing.B, start time.Duration) {
	b.ReportMetric(float64(cputime.Used()-start)/float64(b.N), "cpu-ns/op")
}

func BenchmarkReplyText(b *testing.B) {
	m, err := Parse(bytes.NewReader(textMail()), DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		ReplyText(m.Text)
	}
}

func BenchmarkWriteTo(b *testing.B) {
	out := Outgoing{
		Seed: "bench", HeaderID: "<a@example.com>", Date: testDate, Subject: "Welcome",
		From: Address{Email: "a@example.com"}, To: []Address{{Email: "b@example.com"}},
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
