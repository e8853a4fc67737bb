package mime

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"io"
	"mime/quotedprintable"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/mailtest"
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
			if _, err := Parse(tt.r, mail.DefaultLimits()); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, nil }

func TestParseLimits(t *testing.T) {
	t.Parallel()
	lim := mail.Limits{Depth: 2, Parts: 3, HeaderBytes: 1000, TextBytes: 10, Links: 10, Addresses: 2}
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
		{"deeper than the limit", mailtest.Nested(3, "\r\n", "text"), "", 1, true},
		{"as deep as the limit", mailtest.Nested(2, "\r\n", "text"), "text", 0, false},
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
				m, err := Parse(strings.NewReader(raw), mail.DefaultLimits())
				if err != nil || m.Text != tt.text {
					t.Errorf("got %q, %v, want %q", m.Text, err, tt.text)
				}
			}
		})
	}
}

// TestParseShapes reads structures that programs write against the standards or
// common use: what is the text, what is a file, and what the HTML shows.
func TestParseShapes(t *testing.T) {
	t.Parallel()
	multipart := func(subtype string, parts ...string) string {
		s := "Content-Type: multipart/" + subtype + "; boundary=" + subtype[:2] + "\n\n"
		for _, p := range parts {
			s += "--" + subtype[:2] + "\n" + p + "\n"
		}
		return s + "--" + subtype[:2] + "--"
	}
	const (
		plain = "Content-Type: text/plain\n\nplain"
		html  = "Content-Type: text/html\n\n<img src='CID:a%2Bb@x'>"
		image = "Content-Type: image/png; name=a.png\nContent-ID: <a+b@x>\n\nx"
	)
	tests := []struct{ name, raw, text, html, files, shown string }{
		{"a part without an empty line after its header", multipart("mixed", "Content-Type: text/plain\nplain", image), "plain", "", "a.png", ""},
		{"no empty line after any header", "Content-Type: multipart/mixed; boundary=b\nA preamble\n--b\nContent-Type: text/plain\nplain\n--b\nContent-Type: image/png; name=a.png\nno field\nContent-ID: <i>\n\nx\n--b--", "plain", "", "a.png", ""},
		{"the text after an image", multipart("related", image, html), "", "<img src='CID:a%2Bb@x'>", "a.png", "a.png"},
		{"the alternatives after an image", multipart("related", image, multipart("alternative", plain, html)), "plain", "<img src='CID:a%2Bb@x'>", "a.png", "a.png"},
		{"both texts related", multipart("related", plain, html, image), "plain", "<img src='CID:a%2Bb@x'>", "a.png", "a.png"},
		{"the text named as the start", multipart("related; start=\"<r@x>\"", "Content-Type: text/html; name=b.html\nContent-ID: <f@x>\n\nb", "Content-Type: text/html; name=a.html\nContent-ID: <r@x>\n\na"), "", "b\na", "", ""},
		{"a second HTML, which the first one refers to", multipart("related", html, "Content-Type: text/html; name=b.html\nContent-ID: <b@x>\n\nb"), "", "<img src='CID:a%2Bb@x'>", "b.html", "b.html"},
		{"HTML with a name, then a named file", multipart("mixed", "Content-Type: text/html; name=a.html\n\na", "Content-Type: text/html; name=b.html\n\nb"), "", "a", "b.html", ""},
		{"HTML with a name after the text", multipart("mixed", plain, "Content-Type: text/html; name=b.html\n\nb"), "plain", "", "b.html", ""},
		{"HTML with a name and the disposition of a file", multipart("mixed", "Content-Type: text/html; name=b.html\nContent-Disposition: attachment\n\nb"), "", "", "b.html", ""},
		{"forms for other clients", multipart("alternative", plain, "Content-Type: text/x-amp-html\n\n<html amp4email>", "Content-Type: text/watch-html\n\n<b>", "Content-Type: text/html\n\nhtml"), "plain", "html", "", ""},
		{"only a form for other clients", multipart("alternative", "Content-Type: text/x-amp-html\n\na"), "", "", "-", ""},
		{"an invitation among the forms", multipart("alternative", plain, "Content-Type: text/calendar; name=a.ics\n\na"), "plain", "", "a.ics", ""},
		{"an attached image that the HTML shows", multipart("mixed", html, "Content-Type: image/png; name=a.png\nContent-ID: <a+b@x>\nContent-Disposition: attachment\n\nx", "Content-Type: image/png; name=b.png\nContent-ID: <b@x>\nContent-Disposition: attachment\n\nx"), "", "<img src='CID:a%2Bb@x'>", "a.png b.png", "a.png"},
		{"a Content-ID as an encoded word", multipart("related", html, "Content-Type: image/png; name=a.png\nContent-ID: =?utf-8?q?=3Ca+b=40x=3E?=\nContent-Disposition: attachment\n\nx"), "", "<img src='CID:a%2Bb@x'>", "a.png", "a.png"},
		{"a Content-ID that was folded", multipart("related", html, "Content-Type: image/png; name=a.png\nContent-ID: <a+\n b@x>\nContent-Disposition: attachment\n\nx"), "", "<img src='CID:a%2Bb@x'>", "a.png", "a.png"},
		{"an encoding as an encoded word, with a comment", multipart("mixed", "Content-Type: text/plain\nContent-Transfer-Encoding: =?utf-8?q?base64?= (MIME)\n\ncGxhaW4="), "plain", "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := Parse(strings.NewReader(strings.ReplaceAll(tt.raw, "\n", "\r\n")), mail.DefaultLimits())
			if err != nil {
				t.Fatal(err)
			}
			var files, shown []string
			for _, a := range m.Attachments {
				name := cmp.Or(a.Filename, "-")
				files = append(files, name)
				if a.Inline {
					shown = append(shown, name)
				}
			}
			if m.Text != tt.text || m.HTML != tt.html || strings.Join(files, " ") != tt.files || strings.Join(shown, " ") != tt.shown {
				t.Errorf("got text %q, HTML %q, files %q, shown %q", m.Text, m.HTML, files, shown)
			}
		})
	}
}

// TestParseRaw8BitHeader takes the charset of raw 8-bit header fields from the text.
func TestParseRaw8BitHeader(t *testing.T) {
	t.Parallel()
	const fields = "From: \xcf\xee\xf7\xf2\xe0 <a@x.example>\nSubject: \xca\xee\xe4\n"
	for name, raw := range map[string]string{
		"of the message":         fields + "Content-Type: text/plain; charset=windows-1251\n\n\xca\xee\xe4",
		"of a part":              fields + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain; charset=windows-1251\n\n\xca\xee\xe4\n--b--",
		"of a part, after ASCII": fields + "Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain; charset=us-ascii\n\nCode\n--b\nContent-Type: text/html; charset=windows-1251\n\n\xca\xee\xe4\n--b--",
		"of the HTML":            fields + "Content-Type: text/html\n\n<meta charset=windows-1251>\xca\xee\xe4",
	} {
		m, err := Parse(strings.NewReader(raw), mail.DefaultLimits())
		if err != nil || m.Subject != "Код" || m.From.Name != "Почта" || m.From.Email != "a@x.example" {
			t.Errorf("%s: got %q from %v, %v", name, m.Subject, m.From, err)
		}
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
		{"an unknown encoding is ignored", "x-zip", "a=3D", "a=3D"},
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
