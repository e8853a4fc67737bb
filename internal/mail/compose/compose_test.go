package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mailtest"
	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// plainMail is a plain outgoing message.
func plainMail() Outgoing {
	return Outgoing{
		Seed: "seed", HeaderID: "<1@example.com>", Date: mailtest.Date, Subject: "Hello",
		From: mail.Address{Name: "Ann", Email: "ann@example.com"}, To: []mail.Address{{Email: "bob@example.net"}}, Text: "Hello\n",
	}
}

func compose(t interface{ Fatal(...any) }, o *Outgoing) []byte {
	var b bytes.Buffer
	n, err := o.WriteTo(&b)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(b.Len()) {
		t.Fatal("WriteTo returned ", n, " and wrote ", b.Len())
	}
	return b.Bytes()
}

func TestWriteTo(t *testing.T) {
	t.Parallel()
	o := plainMail()
	o.Cc = []mail.Address{{Name: "Doe, Jane", Email: "jane@bücher.example"}}
	o.ReplyTo = []mail.Address{{Name: "Größe", Email: "r@example.com"}}
	o.Sender = &mail.Address{Email: "agent@example.com"}
	o.InReplyTo = []string{"<0@example.net>"}
	o.References = []string{"<a@example.net>", "<0@example.net>"}
	o.Headers = [][2]string{{"X-Tag", "a b"}}
	want := strings.Join([]string{
		"Date: Fri, 13 Nov 2026 09:14:20 +0000",
		"From: Ann <ann@example.com>",
		"Sender: agent@example.com",
		"Reply-To: =?utf-8?b?R3LDtsOfZQ==?= <r@example.com>",
		"To: bob@example.net",
		`Cc: "Doe, Jane" <jane@xn--bcher-kva.example>`,
		"Subject: Hello",
		"Message-ID: <1@example.com>",
		"In-Reply-To: <0@example.net>",
		"References: <a@example.net> <0@example.net>",
		"X-Tag: a b",
		"MIME-Version: 1.0",
		"Content-Type: text/plain; charset=us-ascii",
		"Content-Transfer-Encoding: 7bit",
		"", "Hello", "",
	}, "\r\n")
	if diff := cmp.Diff(want, string(compose(t, &o))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWriteToIsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	o := plainMail()
	o.HTML = "<p>Hello</p>"
	opened := 0
	o.Attachments = []Attachment{{Filename: "a.txt", Open: func() (io.ReadCloser, error) {
		opened++
		return io.NopCloser(strings.NewReader("content")), nil
	}}}
	first, second := compose(t, &o), compose(t, &o)
	if !bytes.Equal(first, second) || opened != 2 {
		t.Errorf("opened %d times; first:\n%s\nsecond:\n%s", opened, first, second)
	}
	o.Seed = "another"
	if bytes.Equal(first, compose(t, &o)) {
		t.Error("another seed gives the same boundaries")
	}
}

func TestWriteToRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	tests := []struct {
		field string
		set   func(o *Outgoing, bad string)
	}{
		{"subject", func(o *Outgoing, bad string) { o.Subject = bad }},
		{"from.name", func(o *Outgoing, bad string) { o.From.Name = bad }},
		{"from.email", func(o *Outgoing, bad string) { o.From.Email = bad + "@example.com" }},
		{"sender.email", func(o *Outgoing, bad string) { o.Sender = &mail.Address{Email: "a@b.c" + bad} }},
		{"to[1].name", func(o *Outgoing, bad string) { o.To = append(o.To, mail.Address{Name: bad, Email: "a@b.c"}) }},
		{"to[0].email", func(o *Outgoing, bad string) { o.To[0].Email += bad }},
		{"cc[0].email", func(o *Outgoing, bad string) { o.Cc = []mail.Address{{Email: "a@b.c>" + bad}} }},
		{"reply_to[0].name", func(o *Outgoing, bad string) { o.ReplyTo = []mail.Address{{Name: bad, Email: "a@b.c"}} }},
		{"message_id", func(o *Outgoing, bad string) { o.HeaderID = "<a@b" + bad + ">" }},
		{"in_reply_to", func(o *Outgoing, bad string) { o.InReplyTo = []string{"<a@b.c>", "<" + bad + "@b>"} }},
		{"references", func(o *Outgoing, bad string) { o.References = []string{"<a@b.c>" + bad} }},
		{"headers.X-Tag", func(o *Outgoing, bad string) { o.Headers = [][2]string{{"X-Tag", bad}} }},
		{"attachments[0].filename", func(o *Outgoing, bad string) { o.Attachments = []Attachment{{Filename: bad}} }},
		{"attachments[0].content_type", func(o *Outgoing, bad string) { o.Attachments = []Attachment{{ContentType: "text/plain" + bad}} }},
		{"attachments[0].content_id", func(o *Outgoing, bad string) { o.Attachments = []Attachment{{ContentID: "a" + bad}} }},
	}
	for _, tt := range tests {
		for _, bad := range []string{"\r", "\n", "a\r\nBcc: v@x.y", "a\r\n\r\nb", "\x00", "\u0085", "\u2028", "\x1b", "\xff"} {
			o := plainMail()
			tt.set(&o, bad)
			wantFieldError(t, &o, tt.field)
		}
	}
	for field, o := range map[string]Outgoing{
		"from.email":                  {HeaderID: "<1@b>", Date: mailtest.Date},
		"message_id":                  {From: mail.Address{Email: "a@b.c"}, Date: mailtest.Date},
		"date":                        {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>"},
		"text":                        {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, Text: "a\x00b"},
		"html":                        {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, HTML: "a\xff"},
		"headers.Bcc":                 {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, Headers: [][2]string{{"Bcc", "x"}}},
		"headers.content-type":        {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, Headers: [][2]string{{"content-type", "x"}}},
		"headers.DKIM-Signature":      {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, Headers: [][2]string{{"DKIM-Signature", "x"}}},
		"headers.A b":                 {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, Headers: [][2]string{{"A b", "x"}}},
		"headers.A:":                  {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, Headers: [][2]string{{"A:", "x"}}},
		"headers.":                    {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, Headers: [][2]string{{"", "x"}}},
		"attachments[0].filename":     {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, Attachments: []Attachment{{Filename: long}}},
		"attachments[0].content_type": {From: mail.Address{Email: "a@b.c"}, HeaderID: "<1@b>", Date: mailtest.Date, Attachments: []Attachment{{ContentType: "text"}}},
	} {
		wantFieldError(t, &o, field)
	}
}

func wantFieldError(t *testing.T, o *Outgoing, field string) {
	t.Helper()
	var b bytes.Buffer
	_, err := o.WriteTo(&b)
	var fault *FieldError
	if !errors.As(err, &fault) || fault.Field != field || fault.Reason == "" {
		t.Errorf("got error %v, want one of %s", err, field)
	}
	if b.Len() > 0 {
		t.Errorf("%s: refused, but %d bytes are written", field, b.Len())
	}
}

func TestWriteToReportsErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	o := plainMail()
	o.Attachments = []Attachment{{Filename: "a", Open: func() (io.ReadCloser, error) { return nil, broken }}}
	if _, err := o.WriteTo(io.Discard); !errors.Is(err, broken) {
		t.Errorf("attachment: got %v", err)
	}
	o = plainMail()
	if _, err := o.WriteTo(brokenWriter{broken}); !errors.Is(err, broken) {
		t.Errorf("writer: got %v", err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

var (
	anyText = rapid.OneOf(
		rapid.StringOf(rapid.RuneFrom([]rune("ab ,.\"'\\()<>@;:=?_é漢😀-"))),
		rapid.StringMatching(`[a-z ]{0,300}`),
		rapid.StringMatching(`[A-Za-z]{0,1000}[A-Za-z]{0,200}`),
		rapid.Just("=?utf-8?q?no_word?="),
	)
	anyBody = rapid.OneOf(
		rapid.StringOf(rapid.RuneFrom([]rune("ab .=\n\r\t é漢-"))),
		rapid.StringMatching(`[a-z ]{0,1000}[a-z ]{0,200}`),
		rapid.SampledFrom([]string{"", ".\n", "From me\n", "--=_\n", " \n \n", "a\n\n\n", "Ünï\n"}),
	)
	anyEmail = rapid.SampledFrom([]string{"a@example.com", "Bob.Long+tag@mail.example.org", `"a b"@example.net`, `"a@b"@example.net`, strings.Repeat("x", 60) + "@" + strings.Repeat("y", 60) + ".example"})
	anyID    = rapid.StringMatching(`<[!-;=?-~]{1,60}@example\.com>`)
)

func drawAddress(t *rapid.T, label string) mail.Address {
	return mail.Address{Name: plaintext.Truncate(anyText.Draw(t, label+" name"), 200), Email: anyEmail.Draw(t, label)}
}

func drawMail(t *rapid.T) Outgoing {
	addresses := func(label string, least int) (list []mail.Address) {
		for range rapid.IntRange(least, 4).Draw(t, label) {
			list = append(list, drawAddress(t, label))
		}
		return list
	}
	o := Outgoing{
		Seed: rapid.String().Draw(t, "seed"), HeaderID: anyID.Draw(t, "id"), Date: mailtest.Date.Add(time.Duration(rapid.IntRange(-1e6, 1e6).Draw(t, "date")) * time.Second),
		From: drawAddress(t, "from"), To: addresses("to", 1), Cc: addresses("cc", 0), ReplyTo: addresses("reply to", 0),
		Subject: anyText.Draw(t, "subject"), Text: anyBody.Draw(t, "text"), HTML: anyBody.Draw(t, "html"),
		InReplyTo: rapid.SliceOfN(anyID, 0, 2).Draw(t, "in reply to"), References: rapid.SliceOfN(anyID, 0, 30).Draw(t, "references"),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "attachments") {
		o.Attachments = append(o.Attachments, Attachment{
			Filename:    fmt.Sprint(i) + plaintext.Truncate(anyText.Draw(t, "file name"), 250),
			ContentType: rapid.SampledFrom([]string{"", "text/plain", "application/pdf", "message/rfc822", `text/csv; header="a b"`}).Draw(t, "type"),
			ContentID:   rapid.SampledFrom([]string{"", "cid@example.com"}).Draw(t, "cid"),
			Inline:      rapid.Bool().Draw(t, "inline"),
			Content:     rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "content"),
		})
	}
	return o
}

// asParsed returns what Parse must return for a message: header lines without
// surrounding white space, and a line ending after text that ends the message.
func asParsed(o Outgoing) mime.Message {
	clean := func(list []mail.Address) []mail.Address {
		out := make([]mail.Address, len(list))
		for i, a := range list {
			out[i] = mail.Address{Name: plaintext.FoldSpace(a.Name), Email: a.Email}
		}
		return out
	}
	m := mime.Message{
		HeaderID: o.HeaderID, InReplyTo: o.InReplyTo, References: o.References,
		Addresses: mail.Addresses{From: &clean([]mail.Address{o.From})[0], To: clean(o.To), Cc: clean(o.Cc), ReplyTo: clean(o.ReplyTo)},
		Subject:   strings.TrimSpace(o.Subject), Date: o.Date, Text: plaintext.UnixLines(o.Text), HTML: plaintext.UnixLines(o.HTML),
	}
	if len(o.Attachments) == 0 && (o.Text == "" || o.HTML == "") {
		last := &m.Text
		if o.HTML != "" {
			last = &m.HTML
		}
		if !strings.HasSuffix(*last, "\n") {
			*last += "\n"
		}
	}
	return m
}
