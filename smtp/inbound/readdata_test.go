package inbound

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// readerConn is a connection that gives what a reader gives.
type readerConn struct {
	net.Conn
	io.Reader
}

func (c readerConn) Read(b []byte) (int, error)    { return c.Reader.Read(b) }
func (readerConn) SetReadDeadline(time.Time) error { return nil }

// wireOf reads r with this limit on the message size.
func wireOf(r io.Reader, limit int64) *wire {
	conn := readerConn{Reader: r}
	cfg := ServerConfig{MaxSize: limit}
	return &wire{server: &Server{cfg: cfg.withDefaults()}, raw: conn, conn: conn}
}

// readAll reads data off a wire with this limit, and returns the mail and what
// follows it.
func readAll(t *testing.T, r io.Reader, limit int64, edits ...func(*dataSink)) (mail, rest string, ended bool, err error) {
	t.Helper()
	p, err := newSpools(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	spool := p.spool()
	defer func() { _ = spool.Close() }()
	w := wireOf(r, limit)
	sink := &dataSink{spool: spool, limit: limit}
	for _, edit := range edits {
		edit(sink)
	}
	err = w.readData(sink)
	whole, readErr := spool.Reader()
	if readErr != nil {
		t.Fatal(readErr)
	}
	b, readErr := io.ReadAll(whole)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(b), string(w.pending()), w.unread, err
}

// inAllWays reads the same input at once, byte by byte, and with its last piece
// and EOF together.
func inAllWays(in string) map[string]io.Reader {
	return map[string]io.Reader{
		"at once":     strings.NewReader(in),
		"by the byte": iotest.OneByteReader(strings.NewReader(in)),
		"by halves":   iotest.HalfReader(strings.NewReader(in)),
	}
}

func TestReadData(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxTextLine)
	tests := []struct{ name, in, mail, rest string }{
		{"an empty mail", ".\r\n", "", ""},
		{"one line", "a\r\n.\r\n", "a\r\n", ""},
		{"commands behind it", "a\r\n.\r\nMAIL\r\n", "a\r\n", "MAIL\r\n"},
		{"a dot that was doubled", "..\r\n..a\r\n...\r\n.\r\n", ".\r\n.a\r\n..\r\n", ""},
		{"a dot that should have been doubled", ".a\r\n.\r\n", "a\r\n", ""},
		{"dots within lines", "a.\r\n .\r\n.\r\n", "a.\r\n .\r\n", ""},
		{"a line longer than the buffer", long + "\r\n." + long + "\r\n.\r\n", long + "\r\n" + long + "\r\n", ""},
		{"empty lines", "\r\n\r\n.\r\n", "\r\n\r\n", ""},
	}
	for _, tt := range tests {
		for way, r := range inAllWays(tt.in) {
			mail, rest, ended, err := readAll(t, r, 1<<20)
			if err != nil || ended || mail != tt.mail {
				t.Errorf("%s, %s: %d bytes, ended %t, %v; want %d bytes", tt.name, way, len(mail), ended, err, len(tt.mail))
			}
			if way == "at once" && rest != tt.rest {
				t.Errorf("%s: left %q, want %q", tt.name, rest, tt.rest)
			}
		}
	}
}

// Bytes that do not end the data when they arrive at once do not end it in pieces
// either. The sender controls the pieces (S1).
func TestNormalizedDataEndsAtTheSamePlaceInPieces(t *testing.T) {
	t.Parallel()
	for _, end := range ends {
		if strings.Contains(end, "\x00") {
			continue
		}
		in := "a" + end + "b\r\n.\r\nRSET\r\n"
		for way, r := range inAllWays(in) {
			mail, _, ended, err := readAll(t, r, 1<<20, func(d *dataSink) { d.normalize = true })
			if err != nil || ended || !strings.HasPrefix(mail, "a\r\n") || !strings.HasSuffix(mail, "\r\nb\r\n") {
				t.Errorf("%q, %s: read %q, ended %t, %v; want all of it", end, way, mail, ended, err)
			}
		}
	}
}

func TestNormalizedLineEnds(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"code 4829=\r\r\n13":   "code 4829=\r\n13",
		"a\r\r\n\r\r\nb":       "a\r\n\r\nb",
		"a\r\rb":               "a\r\n\r\nb",
		"a\r\r\r\nb":           "a\r\n\r\nb",
		"a\n\rb\r\n\nc":        "a\r\n\r\nb\r\n\r\nc",
		"a" + "\r\r\r\r" + "b": "a\r\n\r\n\r\n\r\nb",
	} {
		for way, r := range inAllWays(in + "\r\n.\r\n") {
			mail, _, ended, err := readAll(t, r, 1<<20, func(d *dataSink) { d.normalize = true })
			if err != nil || ended || mail != want+"\r\n" {
				t.Errorf("%q, %s: read %q, ended %t, %v; want %q", in, way, mail, ended, err, want)
			}
		}
	}
}

// The ends of data that servers have been fooled with (S1, CVE-2023-51764).
func TestReadDataRefusesBareLineEnds(t *testing.T) {
	t.Parallel()
	for _, end := range []string{
		"\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r.\r\n", "\r\n.\r", "\r.\n", "\n.\r", "\r\r\n.\r\r\n", "\r\n.\r\r\n", "\n\r.\n\r",
	} {
		for way, r := range inAllWays("Subject: a\r\n\r\nb" + end + "MAIL FROM:<x@x>\r\nc\r\n.\r\n") {
			mail, _, ended, err := readAll(t, r, 1<<20)
			if !errors.Is(err, replyBareLineEnd) || !ended {
				t.Errorf("%q, %s: ended %t, %v, mail %q; want it refused", end, way, ended, err, mail)
			}
		}
	}
	for _, end := range []string{"\r\n\x00.\r\n", "\r\n.\x00\r\n", "\r\n.\x00.\r\n"} {
		for way, r := range inAllWays("b" + end + "c\r\n.\r\n") {
			mail, _, ended, err := readAll(t, r, 1<<20)
			if !errors.Is(err, replyNUL) || !ended {
				t.Errorf("%q, %s: ended %t, %v, mail %q; want it refused", end, way, ended, err, mail)
			}
		}
	}
}

func TestReadDataLimit(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	line := strings.Repeat("x", 98) + "\r\n"
	exact := strings.Repeat(line, limit/100)
	tests := []struct {
		name, in string
		want     error
		ended    bool
	}{
		{"exactly the limit", exact, nil, false},
		{"dots of transparency do not count", "." + exact[:98] + exact[98:], nil, false},
		{"one byte more", "x" + exact, replyTooLarge, false},
		{"a little more", exact + exact, replyTooLarge, false},
		{"much more", strings.Repeat(exact, 8), replyTooLarge, true},
	}
	for _, tt := range tests {
		in := &counter{Reader: strings.NewReader(tt.in + ".\r\n")}
		mail, _, ended, err := readAll(t, in, limit)
		if !errors.Is(err, tt.want) || ended != tt.ended {
			t.Errorf("%s: ended %t, %v; want ended %t, %v", tt.name, ended, err, tt.ended, tt.want)
		}
		if len(mail) > limit || err == nil && len(mail) != limit {
			t.Errorf("%s: stored %d bytes", tt.name, len(mail))
		}
		if in.n > limit+overrun+wireBuffer {
			t.Errorf("%s: read %d bytes", tt.name, in.n)
		}
	}
}

type counter struct {
	io.Reader
	n int
}

func (c *counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

func TestReadDataCutShort(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"", "a", "a\r\n", "a\r\n.", "a\r\n.\r"} {
		if _, _, ended, err := readAll(t, strings.NewReader(in), 1<<20); !errors.Is(err, replyCutShort) || !ended {
			t.Errorf("%q: ended %t, %v; want %v", in, ended, err, replyCutShort)
		}
	}
}

// FuzzDotReader compares the reader with one that is as simple as can be (S25).
func FuzzDotReader(f *testing.F) {
	for _, s := range []string{".\r\n", "a\r\n.\r\n", "..\r\n.\r\n", "a\n.\r\n", "a\r\n.\r", "\r\r\n.\r\n", "\r\n..\r\r\n.\r\n", ".\r.\r\n.\r\n"} {
		f.Add([]byte(s))
	}
	p, err := newSpools(f.TempDir(), 1<<20)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		want, ok := simpleData(string(in))
		for way, r := range inAllWays(string(in)) {
			spool := p.spool()
			err := wireOf(r, 1<<20).readData(&dataSink{spool: spool, limit: 1 << 20})
			got, _ := spool.Bytes()
			if (err == nil) != ok || ok && string(got) != want {
				t.Errorf("%s: %q, %v; want %q, %t", way, bytes.Clone(got), err, want, ok)
			}
			if err := spool.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// simpleData returns the mail in front of the first CRLF.CRLF, if every line of
// it ends in CRLF.
func simpleData(in string) (mail string, ok bool) {
	in = "\r\n" + in
	end := strings.Index(in, "\r\n.\r\n")
	if end < 0 {
		return "", false
	}
	in = in[:end+2]
	if bare := strings.ReplaceAll(in, "\r\n", ""); strings.ContainsAny(bare, "\r\n\x00") {
		return "", false
	}
	return strings.ReplaceAll(in, "\r\n.", "\r\n")[2:], true
}
