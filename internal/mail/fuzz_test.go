package mail_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/internal/mail/mailtest"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/mail/reply"
)

// FuzzParse reads any input as a message (M13). The result must be
// deterministic, within the limits and valid text.
func FuzzParse(f *testing.F) {
	mailtest.EachMessage(f, "testdata/mail", func(raw []byte) { f.Add(raw) })
	lim := mail.DefaultLimits()
	lim.HeaderBytes, lim.TextBytes, lim.Depth, lim.Parts = 10_000, 10_000, 10, 20
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := mime.Parse(bytes.NewReader(raw), lim)
		if err != nil {
			if !errors.Is(err, mime.ErrHeaderTooLarge) {
				t.Fatalf("an error for odd mail: %v", err)
			}
			return
		}
		for _, s := range []string{m.Subject, m.Text, m.HTML, m.HeaderID, m.AutoSubmitted, m.Precedence} {
			mailtest.CheckText(t, "text", s)
		}
		if len(m.Text) > lim.TextBytes || len(m.HTML) > lim.TextBytes || len(m.Attachments) > lim.Parts {
			t.Errorf("over the limits: %d and %d bytes, %d attachments", len(m.Text), len(m.HTML), len(m.Attachments))
		}
		if strings.ContainsAny(m.Subject, "\r\n") {
			t.Errorf("subject %q", m.Subject)
		}
		if f := m.From; f != nil {
			mailtest.CheckText(t, "name of the sender", f.Name)
			mailtest.CheckText(t, "address of the sender", f.Email)
			if strings.ContainsAny(f.Name+f.Email, "\r\n") || *f == (mail.Address{}) {
				t.Errorf("sender %+v", f)
			}
		}
		for _, list := range [][]mail.Address{m.To, m.Cc, m.Bcc, m.ReplyTo} {
			for _, a := range list {
				mailtest.CheckText(t, "name", a.Name)
				mailtest.CheckText(t, "address", a.Email)
				if strings.ContainsAny(a.Name+a.Email, "\r\n") || a.Email == "" {
					t.Errorf("address %+v", a)
				}
			}
		}
		for _, a := range m.Attachments {
			fuzzPart(t, raw, a, lim)
		}
		if again, err := mime.Parse(iotest.HalfReader(bytes.NewReader(raw)), lim); err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("different result when read in other pieces, %v:\n%+v\n%+v", err, m, again)
		}
		composeReply(t, m)
	})
}

// fuzzPart reads an attachment and checks its announced size.
func fuzzPart(t *testing.T, raw []byte, a mail.Attachment, lim mail.Limits) {
	t.Helper()
	mailtest.CheckText(t, "file name", a.Filename)
	mailtest.CheckText(t, "content id", a.ContentID)
	if strings.ContainsAny(a.Filename, "/\\\r\n") || len(a.Filename) > mime.MaxFilename {
		t.Errorf("file name %q", a.Filename)
	}
	r, err := mime.OpenPart(bytes.NewReader(raw), a.Part, lim)
	if err != nil {
		t.Fatalf("part %d: %v", a.Part, err)
	}
	if n, err := io.Copy(io.Discard, r); err != nil || n != a.Size {
		t.Errorf("part %d: %d bytes, %v, want %d", a.Part, n, err, a.Size)
	}
}

// composeReply composes a reply to a message: whatever Parse returns can be written.
func composeReply(t *testing.T, m *mime.Message) {
	t.Helper()
	o := simpleMail()
	o.Subject = reply.ReplySubject(m.Subject)
	o.Text = compose.ForwardText("note", compose.ForwardedHeader{To: m.To, Subject: m.Subject}, m.Text)
	o.HTML = m.HTML
	o.References = append(m.References, m.InReplyTo...)
	if m.HeaderID != "" {
		o.InReplyTo = []string{m.HeaderID}
	}
	if _, err := o.WriteTo(io.Discard); err != nil {
		t.Errorf("cannot compose a reply: %v", err)
	}
}

func FuzzMailbox(f *testing.F) {
	for _, s := range []string{
		"a@b.c", "Ann <a@b.c>", `"Ann, E" <"a b"@b.c>`, "jürgen@bücher.example", "a@b.c\r\nBcc: d@e.f", "<a@b.c>", `"\"" <a@b.c>`, "a@[1.2.3.4]", "=?utf-8?q?a?= <a@b.c>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := mail.ParseMailbox(s)
		if err != nil {
			return
		}
		if err := mail.ValidAddress(a.Email); err != nil {
			t.Fatalf("%q gave an invalid address %q: %v", s, a.Email, err)
		}
		if strings.ContainsAny(a.Name+a.Email, "\r\n\x00") {
			t.Fatalf("%q gave %+v", s, a)
		}
		o := simpleMail()
		o.To = []mail.Address{a}
		var raw bytes.Buffer
		if _, err := o.WriteTo(&raw); err != nil {
			t.Fatalf("%+v cannot be written: %v", a, err)
		}
		m, err := mime.Parse(&raw, mail.DefaultLimits())
		if err != nil || len(m.To) != 1 {
			t.Fatalf("%+v is read as %+v, %v", a, m.To, err)
		}
		if plaintext.IsASCII(a.Email) && m.To[0].Email != a.Email {
			t.Errorf("%q is read as %q", a.Email, m.To[0].Email)
		}
	})
}

// simpleMail is a plain outgoing message.
func simpleMail() compose.Outgoing {
	return compose.Outgoing{
		Seed: "seed", HeaderID: "<1@example.com>", Date: mailtest.Date, Subject: "Hello",
		From: mail.Address{Name: "Ann", Email: "ann@example.com"}, To: []mail.Address{{Email: "bob@example.net"}}, Text: "Hello\n",
	}
}
