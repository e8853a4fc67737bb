package mail_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/postroom/postroom/internal/mail"
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
