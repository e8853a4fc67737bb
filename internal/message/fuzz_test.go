package message

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

// addMails gives the fixtures to a fuzz target.
func addMails(f *testing.F, add func(raw []byte)) {
	f.Helper()
	files, err := filepath.Glob("testdata/mail/*.eml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		add(raw)
	}
	add(textMail())
	add([]byte(nested(5, "\n", "text")))
}

// clean checks what all text that is read must be.
func clean(t *testing.T, what, s string) {
	t.Helper()
	if !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		t.Errorf("%s is not valid UTF-8, or has a NUL: %q", what, s)
	}
}

// FuzzParse reads anything as a mail (M13): alike each time, within the limits,
// and all text of it valid.
func FuzzParse(f *testing.F) {
	addMails(f, func(raw []byte) { f.Add(raw) })
	lim := DefaultLimits()
	lim.HeaderBytes, lim.TextBytes, lim.Depth, lim.Parts = 10_000, 10_000, 10, 20
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := Parse(bytes.NewReader(raw), lim)
		if err != nil {
			if !errors.Is(err, ErrHeaderTooLarge) {
				t.Fatalf("an error for odd mail: %v", err)
			}
			return
		}
		for _, s := range []string{m.Subject, m.Text, m.HTML, m.HeaderID, m.AutoSubmitted, m.Precedence} {
			clean(t, "text", s)
		}
		if len(m.Text) > lim.TextBytes || len(m.HTML) > lim.TextBytes || len(m.Attachments) > lim.Parts {
			t.Errorf("over the limits: %d and %d bytes, %d attachments", len(m.Text), len(m.HTML), len(m.Attachments))
		}
		if strings.ContainsAny(m.Subject, "\r\n") {
			t.Errorf("subject %q", m.Subject)
		}
		if f := m.From; f != nil {
			clean(t, "name of the sender", f.Name)
			clean(t, "address of the sender", f.Email)
			if strings.ContainsAny(f.Name+f.Email, "\r\n") || *f == (Address{}) {
				t.Errorf("sender %+v", f)
			}
		}
		for _, list := range [][]Address{m.To, m.Cc, m.Bcc, m.ReplyTo} {
			for _, a := range list {
				clean(t, "name", a.Name)
				clean(t, "address", a.Email)
				if strings.ContainsAny(a.Name+a.Email, "\r\n") || a.Email == "" {
					t.Errorf("address %+v", a)
				}
			}
		}
		for _, a := range m.Attachments {
			fuzzPart(t, raw, a, lim)
		}
		if again, err := Parse(iotest.HalfReader(bytes.NewReader(raw)), lim); err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("read in other pieces, %v:\n%+v\n%+v", err, m, again)
		}
		answer(t, m)
	})
}

// fuzzPart reads an attachment, which must be as long as it was said to be.
func fuzzPart(t *testing.T, raw []byte, a Attachment, lim Limits) {
	t.Helper()
	clean(t, "file name", a.Filename)
	clean(t, "content id", a.ContentID)
	if strings.ContainsAny(a.Filename, "/\\\r\n") || len(a.Filename) > maxFilename {
		t.Errorf("file name %q", a.Filename)
	}
	r, err := OpenPart(bytes.NewReader(raw), a.Part, lim)
	if err != nil {
		t.Fatalf("part %d: %v", a.Part, err)
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n != a.Size {
		t.Errorf("part %d: %d bytes, %v, want %d", a.Part, n, err, a.Size)
	}
}

// answer composes a reply to a mail: what was read can always be written.
func answer(t *testing.T, m *Message) {
	t.Helper()
	o := plainMail()
	o.Subject = ReplySubject(m.Subject)
	o.Text = ForwardText("note", ForwardedHeader{To: m.To, Subject: m.Subject}, m.Text)
	o.HTML = m.HTML
	o.References = append(m.References, m.InReplyTo...)
	if m.HeaderID != "" {
		o.InReplyTo = []string{m.HeaderID}
	}
	if _, err := o.WriteTo(io.Discard); err != nil {
		t.Errorf("cannot be answered: %v", err)
	}
}

// FuzzExtract looks for codes and links in anything (M13).
func FuzzExtract(f *testing.F) {
	addMails(f, func(raw []byte) {
		if m, err := Parse(bytes.NewReader(raw), DefaultLimits()); err == nil {
			f.Add(m.Subject, m.Text, m.HTML)
		}
	})
	files, err := filepath.Glob("testdata/codes/*.txt")
	if err != nil || len(files) == 0 {
		f.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range readCodeCases(f, string(data)) {
			f.Add(c.subject, c.body, "")
			f.Add(c.subject, "", c.body)
		}
	}
	f.Add("Your code", "7 3 5 1 2 0 https://a.example/(x)", "<a href=https://b.example>Verify</a> 735-120")
	f.Fuzz(func(t *testing.T, subject, text, html string) {
		got := Extract(subject, text, html)
		if again := Extract(subject, text, html); !reflect.DeepEqual(got, again) {
			t.Errorf("not the same twice: %s, %s", show(got), show(again))
		}
		if len(got.Codes) > maxCodes || len(got.Links) > maxLinks {
			t.Errorf("%d codes and %d links", len(got.Codes), len(got.Links))
		}
		for _, link := range got.Links {
			if !isWebLink(link) || strings.ContainsAny(link, " \t\r\n") {
				t.Errorf("link %q", link)
			}
		}
		for _, code := range got.Codes {
			if len(code) < minDigits || len(code) > 60 || strings.Trim(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-") != "" {
				t.Errorf("code %q", code)
			}
		}
		if got.OTP != nil && (len(got.Codes) == 0 || *got.OTP != got.Codes[0]) {
			t.Errorf("otp %q of %q", *got.OTP, got.Codes)
		}
		if got.ActionLink != nil && (len(got.Links) == 0 || *got.ActionLink != got.Links[0]) {
			t.Errorf("action link %q of %q", *got.ActionLink, got.Links)
		}
		if utf8.ValidString(text) {
			reply := ReplyText(strings.ReplaceAll(text, "\x00", ""))
			clean(t, "reply", reply)
			if len(reply) > len(text) {
				t.Errorf("the reply is longer than the text: %q of %q", reply, text)
			}
			clean(t, "snippet", Snippet(text))
			clean(t, "folded", FoldForSearch(text))
		}
	})
}

// FuzzHTMLText makes text of any html (M13).
func FuzzHTMLText(f *testing.F) {
	for _, s := range []string{
		"<p>One<p>Two", "<div style='display:none'>x</div>y", "<a href=https://a.example/><img alt=x></a>", "<blockquote type=cite>a<br>b</blockquote>",
		"<table><tr><td>a<td>b</table>", "<pre>a\n b</pre>", "<!-- <p> -->&amp;&#x0;", "<style>.p{display:none}@media x{.q{display:none}}</style><p class=p>x<p class=q>y", "<div>x<div class=gmail_quote>On<blockquote>y</blockquote>z</div>", "<p>x<div id=divRplyFwdMsg>y<div class=gmail_signature>z",
		"<script><!-- </script> x", "<svg><title>x</svg>y", "\x00<\xff>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, html string) {
		if !utf8.ValidString(html) {
			return
		}
		text, visible := HTMLToText(html), HTMLVisibleText(html)
		clean(t, "text", text)
		clean(t, "visible text", visible)
		clean(t, "reply", HTMLReplyText(html))
		// Each line break may bring the marks of the quotations around it.
		if most := len(html) * (2*maxQuoteMarks + 2); len(visible) > most || len(text) > most+len(html) {
			t.Errorf("%d bytes became %d and %d", len(html), len(text), len(visible))
		}
		clean(t, "HTML", strings.ReplaceAll(ForwardHTML("", ForwardedHeader{}, html), "\x00", ""))
	})
}

// FuzzAddress reads anything as a list of addresses (M13).
func FuzzAddress(f *testing.F) {
	for _, s := range []string{
		"Ann <a@b.c>, d@e.f (Dora)", `"Ann, E" <"a b"@b.c>; x`, "Team: a@b.c, Bob <d@e.f>;", `"(<`, "=?utf-8?q?a=2C_b?= <a@b.c>", "<@r:a@b.c>", "'0@c.d", "\xf1@c.d", "a@b@c <d@e>",
		"Mail Delivery System", `Ann <`, "((a)b)", "mailto:a@b.c", "=?iso-2022-jp?b?GyRCJCIbKEI=?= <a@b.c>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		list, _ := parseAddressList(s, 100)
		again, more := parseAddressList(s, 1)
		if len(list) > 100 || len(again) != min(len(list), 1) || len(list) > 0 && (again[0] != list[0] || more != (len(list) > 1)) {
			t.Errorf("%q: %d addresses, the first %v, more %v", s, len(list), again, more)
		}
		for _, a := range list {
			clean(t, "name", a.Name)
			clean(t, "address", a.Email)
			if strings.ContainsAny(a.Name+a.Email, "\r\n") || a.Email == "" || len(a.Email) > maxAddressBytes || len(a.Name) > maxName {
				t.Errorf("%q gave %+v", s, a)
			}
		}
	})
}

func FuzzMailbox(f *testing.F) {
	for _, s := range []string{
		"a@b.c", "Ann <a@b.c>", `"Ann, E" <"a b"@b.c>`, "jürgen@bücher.example", "a@b.c\r\nBcc: d@e.f", "<a@b.c>", `"\"" <a@b.c>`, "a@[1.2.3.4]", "=?utf-8?q?a?= <a@b.c>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseMailbox(s)
		if err != nil {
			return
		}
		if err := ValidAddress(a.Email); err != nil {
			t.Fatalf("%q gave an invalid address %q: %v", s, a.Email, err)
		}
		if strings.ContainsAny(a.Name+a.Email, "\r\n\x00") {
			t.Fatalf("%q gave %+v", s, a)
		}
		o := plainMail()
		o.To = []Address{a}
		var raw bytes.Buffer
		if _, err := o.WriteTo(&raw); err != nil {
			t.Fatalf("%+v cannot be written: %v", a, err)
		}
		m, err := Parse(&raw, DefaultLimits())
		if err != nil || len(m.To) != 1 {
			t.Fatalf("%+v is read as %+v, %v", a, m.To, err)
		}
		if isASCII(a.Email) && m.To[0].Email != a.Email {
			t.Errorf("%q is read as %q", a.Email, m.To[0].Email)
		}
	})
}
