package outbound

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"
)

// Whatever line ends a message has, DotWriter sends CRLF, and no line of the
// message ends the data (S2).
func TestDotWriterHidesNoEndOfData(t *testing.T) {
	t.Parallel()
	for _, middle := range []string{
		"\n.\n", "\n.\r\n", "\r\n.\n", "\r.\r", "\r.\r\n", "\r\n.\r", "\r.\n", "\n.\r", "\r\n\x00.\r\n", "\r\r\n.\r\r\n",
		"\r\n.\r\r\n", "\r\n\x00.\r\n", "\n\r.\n\r", "\r\n.\r\n", "\r\n..\r\n", ".", "\r\n", "\r", "\n", "",
	} {
		mail := "a" + middle + "b" + middle
		for name, r := range map[string]io.Reader{
			"at once": strings.NewReader(mail), "byte by byte": iotest.OneByteReader(strings.NewReader(mail)),
		} {
			var wire bytes.Buffer
			d := DotWriter{W: bufio.NewWriter(&wire)}
			if _, err := io.Copy(&d, r); err != nil {
				t.Fatal(err)
			}
			if err := d.End(); err != nil {
				t.Fatal(err)
			}
			checkWire(t, name, mail, wire.String())
		}
	}
}

func checkWire(t *testing.T, name, mail, wire string) {
	t.Helper()
	bare := strings.ReplaceAll(wire, "\r\n", "")
	if strings.ContainsAny(bare, "\r\n") {
		t.Errorf("%s: %q has a bare CR or LF as %q", name, mail, wire)
	}
	if n := strings.Count("\r\n"+wire, "\r\n.\r\n"); n != 1 || !strings.HasSuffix("\r\n"+wire, "\r\n.\r\n") {
		t.Errorf("%s: %q ends %d times as %q", name, mail, n, wire)
	}
	got, err := textproto.NewReader(bufio.NewReader(strings.NewReader(wire))).ReadDotBytes()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(mail)
	if want != "" && !strings.HasSuffix(want, "\n") {
		want += "\n"
	}
	if string(got) != want {
		t.Errorf("%s: %q reads as %q", name, mail, got)
	}
}

func FuzzDotWriter(f *testing.F) {
	for _, seed := range []string{"", ".", "a\r\n.\r\nb", "a\n.\nb\r", "..\r\r\n.\n\r"} {
		f.Add(seed, 1)
	}
	f.Fuzz(func(t *testing.T, mail string, size int) {
		var wire bytes.Buffer
		d := DotWriter{W: bufio.NewWriter(&wire)}
		size = min(max(size, 1), len(mail)+1)
		for rest := mail; rest != ""; rest = rest[min(size, len(rest)):] {
			if n, err := d.Write([]byte(rest[:min(size, len(rest))])); err != nil || n != min(size, len(rest)) {
				t.Fatal(n, err)
			}
		}
		if err := d.End(); err != nil {
			t.Fatal(err)
		}
		checkWire(t, "fuzz", mail, wire.String())
	})
}

// Whatever a server says, it becomes a line that a row, a log and a screen can
// hold.
func FuzzReadResponse(f *testing.F) {
	for _, seed := range []string{"250 ok\r\n", "250-a\r\n250 b\r\n", "550 5.1.1 x\n", "1\r\n", "250-\r\n251 \r\n", "550-5.1.1\xff\r\n550 5.1.1\x00\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readResponse(bufio.NewReaderSize(bytes.NewReader(b), maxResponseLine))
		if err != nil {
			return
		}
		s := r.String()
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\r\n\x1b") || len(s) > 1000 || r.Code < 200 || r.Code > 599 {
			t.Errorf("%q becomes %q", b, s)
		}
	})
}

func TestLookupsAreCached(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := newLookups[int](func() time.Time { return now }, dnsTTL)
	asked := 0
	ask := func() (int, error) { asked++; return asked, nil }
	get := func(key string, want int) {
		t.Helper()
		if got, err := l.get(key, ask); got != want || err != nil {
			t.Errorf("%s: %d, %v, want %d", key, got, err, want)
		}
	}
	get("a", 1)
	get("a", 1)
	now = now.Add(dnsTTL)
	get("a", 2)
	for range 3 * maxLookups {
		if _, err := l.get(strings.Repeat("k", asked%97)+strconv.Itoa(asked), ask); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(l.kept); n > maxLookups {
		t.Errorf("%d results are cached", n)
	}
}

// A server that is not on this machine gets no password before there is TLS.
func TestLoginNeedsTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	p := newPeer(Endpoint{Host: "mail.example", user: "me", password: "pw"}, ours, Timeouts{}.OrDefault())
	p.ext = map[string]string{"AUTH": "PLAIN"}
	if err := p.login(); !errors.Is(err, ErrNoTLS) {
		t.Errorf("login() = %v", err)
	}
}

// The password goes over loopback or under TLS, and nowhere else.
func TestPasswordIsNotSentInTheClear(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode, host string
		want       TLSPolicy
		clear      bool
	}{
		{"", "mail.example", TLSVerified, false},
		{"", "127.0.0.1", TLSMaybe, false},
		{"", "localhost", TLSMaybe, false},
		{"?tls=off", "mail.example", tlsNever, true},
	} {
		r, err := ParseRelay("smtp://me:pw@" + tt.host + tt.mode)
		if err != nil {
			t.Fatal(err)
		}
		if r.At.TLS != tt.want || r.At.clearAuth != tt.clear {
			t.Errorf("%s%s: policy %d, clear %v", tt.host, tt.mode, r.At.TLS, r.At.clearAuth)
		}
	}
}
