package mail_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/compose"
	"github.com/postroom/postroom/internal/mail/mailtest"
	"github.com/postroom/postroom/internal/mail/mime"
)

func TestParseReadsPiecewise(t *testing.T) {
	t.Parallel()
	raw := htmlMail()
	want, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	got, err := mime.Parse(iotest.OneByteReader(bytes.NewReader(raw)), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if got.HTML != want.HTML || got.Text != want.Text || got.Attachments[0] != want.Attachments[0] {
		t.Error("a reader that returns single bytes changes the result")
	}
}

func TestOpenPart(t *testing.T) {
	t.Parallel()
	raw := htmlMail()
	m, err := mime.Parse(bytes.NewReader(raw), mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	r, err := mime.OpenPart(bytes.NewReader(raw), m.Attachments[0].Part, mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte{1, 2, 3}, 3<<10)
	if err := iotest.TestReader(r, want); err != nil {
		t.Error(err)
	}
	for _, part := range []int{-1, 3, 1000} {
		if _, err := mime.OpenPart(bytes.NewReader(raw), part, mail.DefaultLimits()); !errors.Is(err, mime.ErrNoPart) {
			t.Errorf("part %d: got %v, want ErrNoPart", part, err)
		}
	}
	broken := errors.New("disk on fire")
	r, err = mime.OpenPart(io.MultiReader(bytes.NewReader(raw[:len(raw)-200]), iotest.ErrReader(broken)), 2, mail.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

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
