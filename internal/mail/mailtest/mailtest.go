// Package mailtest has fixtures and checks for the tests of the message
// packages.
package mailtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// Date is the date of messages in tests.
var Date = time.Date(2026, 11, 13, 9, 14, 20, 0, time.UTC)

// EachMessage calls read with each message in a directory of fixtures, and with
// two more.
func EachMessage(f testing.TB, dir string, read func(raw []byte)) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.eml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		read(raw)
	}
	read(TextMessage())
	read([]byte(Nested(5, "\n", "text")))
}

// CheckText checks that s is valid UTF-8 without NUL.
func CheckText(t testing.TB, what, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		t.Errorf("%s is not valid UTF-8, or has a NUL: %q", what, s)
	}
}

// Nested returns a message of n nested multiparts around a text.
func Nested(n int, eol, text string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=b%d%s%s--b%d%s", i, eol, eol, i, eol)
	}
	b.WriteString(eol + text + eol)
	for i := n - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "--b%d--%s", i, eol)
	}
	return b.String()
}

// TextMessage returns a typical message of 4 KB with a verification code.
func TextMessage() []byte {
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

// OddHTML has documents that HTML parsers read differently.
var OddHTML = []string{
	"<p>One<p>Two", "<div style='display:none'>x</div>y", "<a href=https://a.example/><img alt=x></a>", "<blockquote type=cite>a<br>b</blockquote>",
	"<table><tr><td>a<td>b</table>", "<pre>a\n b</pre>", "<!-- <p> -->&amp;&#x0;", "<style>.p{display:none}@media x{.q{display:none}}</style><p class=p>x<p class=q>y", "<div>x<div class=gmail_quote>On<blockquote>y</blockquote>z</div>", "<p>x<div id=divRplyFwdMsg>y<div class=gmail_signature>z",
	"<script><!-- </script> x", "<svg><title>x</svg>y", "\x00<\xff>",
}
