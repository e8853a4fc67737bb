package message

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestParseReportsOnlyWhatItCannotRead(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	tests := []struct {
		name string
		r    io.Reader
		want error
	}{
		{"the reader's error in the header", io.MultiReader(strings.NewReader("From: a@b.c\r\n"), iotest.ErrReader(broken)), broken},
		{"the reader's error in the body", io.MultiReader(strings.NewReader("From: a@b.c\r\n\r\nHello"), iotest.ErrReader(broken)), broken},
		{"a header over the limit", strings.NewReader("X: " + strings.Repeat("x", 2<<20)), ErrHeaderTooLarge},
		{"a reader that returns nothing", emptyReader{}, io.ErrNoProgress},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Parse(tt.r, DefaultLimits()); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

func TestParseLimits(t *testing.T) {
	t.Parallel()
	lim := Limits{Depth: 2, Parts: 3, HeaderBytes: 1000, TextBytes: 10, Links: 10, Addresses: 2}
	multipart := func(parts ...string) string {
		s := "Content-Type: multipart/mixed; boundary=b\r\n\r\n"
		for _, p := range parts {
			s += "--b\r\n" + p + "\r\n"
		}
		return s + "--b--\r\n"
	}
	tests := []struct {
		name, raw, text string
		parts           int
		truncated       bool
	}{
		{"text of the limit", "\r\n0123456789", "0123456789", 0, false},
		{"text over the limit", "Subject: x\r\n\r\n0123456789x", "0123456789", 0, true},
		{"text cut between characters", "Subject: x\r\n\r\n012345678ü", "012345678", 0, true},
		{"two texts over the limit together", multipart("\r\n01234", "\r\n56789"), "01234\n5678", 0, true},
		{"parts of the limit", multipart("\r\na", "\r\nb", "\r\nc"), "a\nb\nc", 0, false},
		{"parts over the limit", multipart("\r\na", "\r\nb", "\r\nc", "\r\nd"), "a\nb\nc", 0, true},
		{"addresses over the limit", "To: a@b.c, d@e.f\r\nTo: g@h.i\r\n\r\nx", "x", 0, true},
		{"part headers over the limit", multipart("X: "+strings.Repeat("x", 600)+"\r\n\r\na", "X: "+strings.Repeat("x", 600)+"\r\n\r\nb"), "a", 0, true},
		{"deeper than the limit", nested(3, "\r\n", "text"), "", 1, true},
		{"as deep as the limit", nested(2, "\r\n", "text"), "text", 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := Parse(strings.NewReader(tt.raw), lim)
			if err != nil {
				t.Fatal(err)
			}
			if m.Text != tt.text || len(m.Attachments) != tt.parts || m.Truncated != tt.truncated {
				t.Errorf("got text %q, %d attachments, truncated %v", m.Text, len(m.Attachments), m.Truncated)
			}
		})
	}
}

// nested returns a mail of n multiparts within each other about a text.
func nested(n int, eol, text string) string {
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

func TestParseReadsPiecewise(t *testing.T) {
	t.Parallel()
	raw := htmlMail()
	want, err := Parse(bytes.NewReader(raw), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(iotest.OneByteReader(bytes.NewReader(raw)), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if got.HTML != want.HTML || got.Text != want.Text || got.Attachments[0] != want.Attachments[0] {
		t.Error("a reader that gives single bytes changes what is read")
	}
}

// TestParseBoundaries finds the parts whatever the boundaries are like (M4).
func TestParseBoundaries(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, raw, text string }{
		{
			"one that begins with another",
			"Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: multipart/mixed; boundary=bb\n\n--bb\n\none\n--bb--\n--b\n\ntwo\n--b--\n",
			"one\ntwo",
		},
		{
			"an inner one that is not closed",
			"Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\none\n--a\n\ntwo\n--a--\n",
			"one\ntwo",
		},
		{
			"the same one inside itself",
			"Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: multipart/mixed; boundary=a\n\n--a\n\none\n--a--\n\n--a\n\ntwo\n--a--\n",
			"one\ntwo",
		},
		{
			"white space after it",
			"Content-Type: multipart/mixed; boundary=\"a \"\n\n--a \t\n\none\n--a-- \n",
			"one",
		},
		{
			"a line that goes on after it is text",
			"Content-Type: multipart/mixed; boundary=a\n\n--a\n\none\n--ax\n--\n--a--\n",
			"one\n--ax\n--",
		},
		{
			"200 characters",
			"Content-Type: multipart/mixed; boundary=" + strings.Repeat("x", 200) + "\n\n--" + strings.Repeat("x", 200) + "\n\none\n--" + strings.Repeat("x", 200) + "--\n",
			"one",
		},
		{
			"a part without an empty line after its header",
			"Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: text/plain\n--a\n\ntwo\n--a--\n",
			"two",
		},
		{
			"a part that begins without a header",
			"Content-Type: multipart/mixed; boundary=a\n\n--a\none\n--a--\n",
			"one",
		},
		{
			"not named, inside one that is",
			"Content-Type: multipart/mixed; boundary=a\n\n--a\nContent-Type: multipart/mixed\n\n--a\n\none\n--a--\n",
			"one",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, raw := range []string{tt.raw, strings.ReplaceAll(tt.raw, "\n", "\r\n")} {
				m, err := Parse(strings.NewReader(raw), DefaultLimits())
				if err != nil || m.Text != tt.text {
					t.Errorf("got %q, %v, want %q", m.Text, err, tt.text)
				}
			}
		})
	}
}

func TestOpenPart(t *testing.T) {
	t.Parallel()
	raw := htmlMail()
	m, err := Parse(bytes.NewReader(raw), DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	r, err := OpenPart(bytes.NewReader(raw), m.Attachments[0].Part, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte{1, 2, 3}, 3<<10)
	if err := iotest.TestReader(r, want); err != nil {
		t.Error(err)
	}
	for _, part := range []int{-1, 3, 1000} {
		if _, err := OpenPart(bytes.NewReader(raw), part, DefaultLimits()); !errors.Is(err, ErrNoPart) {
			t.Errorf("part %d: got %v, want ErrNoPart", part, err)
		}
	}
	broken := errors.New("disk on fire")
	r, err = OpenPart(io.MultiReader(bytes.NewReader(raw[:len(raw)-200]), iotest.ErrReader(broken)), 2, DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

func TestTransferDecoders(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, encoding, in, want string }{
		{"quoted-printable", "quoted-printable", "a=3Db=\r\nc=C3=BC\r\n", "a=bcü\r\n"},
		{"white space before a line end does not count", "Quoted-Printable", "a \t\r\nb =\r\nc", "a\r\nb c"},
		{"white space after a soft break", "quoted-printable", "a= \t\r\nb", "ab"},
		{"broken escapes are text", "quoted-printable", "50=%, x=4Z, =", "50=%, x=4Z, "},
		{"an escape broken by the line end is text", "quoted-printable", "a=4\r\nb", "a=4\r\nb"},
		{"an escape broken by the end is text", "quoted-printable", "a=4", "a=4"},
		{"lower-case digits", "quoted-printable", "=c3=bc", "ü"},
		{"base64", "base64", "aGVsbG8g\r\nd29ybGQ=\r\n", "hello world"},
		{"base64 in odd lines", "BASE64 ", "aGV\r\nsbG8gd29yb\r\nGQ=", "hello world"},
		{"base64 without padding", "base64", "aGVsbG8gd29ybGQ", "hello world"},
		{"base64 with other characters", "base64", "aGVs*bG8g\x00d29y!bGQ=", "hello world"},
		{"base64 that goes on after padding", "base64", "aGVsbG8=\r\nIHdvcmxk", "hello world"},
		{"uuencode", "x-uuencode", "begin 644 a.txt\r\n#0V%T\r\n%\"@H*\"@H\r\n`\r\nend\r\nmore\r\n", "Cat\n\n\n\n\n"},
		{"uuencode that is cut off", "uuencode", "begin 644 a.txt\n#0V", "C"},
		{"uuencode without a beginning", "uuencode", "#0V%T\n", ""},
		{"an unknown encoding is none", "x-zip", "a=3D", "a=3D"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			whole, single := newTransferDecoder(tt.encoding), newTransferDecoder(tt.encoding)
			got := whole.finish(whole.decode(nil, []byte(tt.in)))
			if string(got) != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			var bytewise []byte
			for i := range len(tt.in) {
				bytewise = single.decode(bytewise, []byte(tt.in[i:i+1]))
			}
			if bytewise = single.finish(bytewise); string(bytewise) != tt.want {
				t.Errorf("byte by byte: got %q, want %q", bytewise, tt.want)
			}
		})
	}
}

func TestTransferDecodersUndoTheStandardEncoders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		cut := rapid.IntRange(1, 100).Draw(t, "cut")
		var qp bytes.Buffer
		w := quotedprintable.NewWriter(&qp)
		w.Binary = true
		if _, err := w.Write(data); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		for encoding, coded := range map[string]string{"base64": base64.StdEncoding.EncodeToString(data), "quoted-printable": qp.String()} {
			d := newTransferDecoder(encoding)
			var got []byte
			for rest := coded; rest != ""; rest = rest[min(cut, len(rest)):] {
				got = d.decode(got, []byte(rest[:min(cut, len(rest))]))
			}
			if got = d.finish(got); !bytes.Equal(got, data) {
				t.Fatalf("%s: got %q, want %q", encoding, got, data)
			}
		}
	})
}

func TestAutomated(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		m    Message
		null bool
		want bool
	}{
		{"a person", Message{}, false, false},
		{"the null reverse-path", Message{}, true, true},
		{"generated", Message{AutoSubmitted: "auto-generated"}, false, true},
		{"replied, with a parameter", Message{AutoSubmitted: "Auto-Replied; owner=x"}, false, true},
		{"said not to be", Message{AutoSubmitted: "no (a person)"}, false, false},
		{"bulk", Message{Precedence: "Bulk"}, false, true},
		{"another precedence", Message{Precedence: "first-class"}, false, false},
		{"a list", Message{HasListField: true}, false, true},
		{"a person with an address", Message{From: &Address{Email: "ann@out.example"}}, false, false},
		{"a no-reply sender", Message{From: &Address{Email: "No-Reply@out.example"}}, false, true},
		{"noreply", Message{From: &Address{Email: "noreply@out.example"}}, false, true},
		{"noreply with a tag", Message{From: &Address{Email: "noreply+42@out.example"}}, false, true},
		{"donotreply", Message{From: &Address{Email: "donotreply@out.example"}}, false, true},
		{"do-not-reply", Message{From: &Address{Email: "do-not-reply@out.example"}}, false, true},
		{"the mailer daemon", Message{From: &Address{Email: "MAILER-DAEMON@out.example"}}, false, true},
		{"notifications", Message{From: &Address{Email: "notifications@out.example"}}, false, true},
		{"bounces", Message{From: &Address{Email: "bounces-7@out.example"}}, false, true},
		{"a name that only begins like one", Message{From: &Address{Email: "noreplyhere@out.example"}}, false, false},
		{"a sender without an address", Message{From: &Address{Name: "noreply"}}, false, false},
	}
	for _, tt := range tests {
		if got := tt.m.Automated(tt.null); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}
