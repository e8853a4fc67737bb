package smtp

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

// Whatever ends the lines of a mail, on the wire it is CRLF, and no line of the
// mail is the line that ends it (S2).
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
			d := dotWriter{w: bufio.NewWriter(&wire)}
			if _, err := io.Copy(&d, r); err != nil {
				t.Fatal(err)
			}
			if err := d.end(); err != nil {
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
		d := dotWriter{w: bufio.NewWriter(&wire)}
		size = min(max(size, 1), len(mail)+1)
		for rest := mail; rest != ""; rest = rest[min(size, len(rest)):] {
			if n, err := d.Write([]byte(rest[:min(size, len(rest))])); err != nil || n != min(size, len(rest)) {
				t.Fatal(n, err)
			}
		}
		if err := d.end(); err != nil {
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
		if !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\r\n\x1b") || len(s) > 1000 || r.code < 200 || r.code > 599 {
			t.Errorf("%q becomes %q", b, s)
		}
	})
}

func TestNextAttempt(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name     string
		attempts int
		age      time.Duration
		jitter   float64
		pause    time.Duration // 0: given up
	}{
		{"first", 1, 0, 0, time.Minute},
		{"a tenth later", 1, 0, 1, 66 * time.Second},
		{"a tenth earlier", 2, time.Minute, -1, 270 * time.Second},
		{"third", 3, time.Hour, 0, 15 * time.Minute},
		{"seventh", 7, 8 * time.Hour, 0, 8 * time.Hour},
		{"eighth", 8, 10 * time.Hour, 0, 8 * time.Hour},
		{"the last one at the end of the time", 8, 23 * time.Hour, 0, time.Hour},
		{"over", 9, 24 * time.Hour, 0, 0},
		{"long over", 2, 48 * time.Hour, 0, 0},
		{"the clock went back", 1, -time.Hour, 0, time.Minute},
		{"an attempt that was not counted", 0, 0, 0, time.Minute},
	}
	for _, tt := range tests {
		now := created.Add(tt.age)
		next, ok := nextAttempt(tt.attempts, created.Add(retryFor), now, tt.jitter)
		if ok != (tt.pause > 0) || ok && next.Sub(now) != tt.pause {
			t.Errorf("%s: %v after %s, want after %s", tt.name, ok, next.Sub(now), tt.pause)
		}
	}
}

func TestLookupsAreKeptForAWhile(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := newLookups[int](func() time.Time { return now }, dnsLife)
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
	now = now.Add(dnsLife)
	get("a", 2)
	for range 3 * maxLookups {
		if _, err := l.get(strings.Repeat("k", asked%97)+strconv.Itoa(asked), ask); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(l.kept); n > maxLookups {
		t.Errorf("%d answers are kept", n)
	}
}

// A server that is not on this machine gets no password before there is TLS.
func TestLoginNeedsTLS(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	defer func() { _, _ = ours.Close(), theirs.Close() }()
	p := newPeer(endpoint{host: "mail.example", user: "me", password: "pw"}, ours, Timeouts{}.orDefault())
	p.ext = map[string]string{"AUTH": "PLAIN"}
	if err := p.login(); !errors.Is(err, errNoTLS) {
		t.Errorf("login() = %v", err)
	}
}

// The password goes over loopback or under TLS, and nowhere else.
func TestPasswordIsNotSentInTheClear(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		mode, host string
		want       tlsPolicy
		clear      bool
	}{
		{"", "mail.example", tlsVerified, false},
		{"", "127.0.0.1", tlsMaybe, false},
		{"", "localhost", tlsMaybe, false},
		{"?tls=off", "mail.example", tlsNever, true},
	} {
		r, err := ParseRelay("smtp://me:pw@" + tt.host + tt.mode)
		if err != nil {
			t.Fatal(err)
		}
		if r.at.tls != tt.want || r.at.clearAuth != tt.clear {
			t.Errorf("%s%s: policy %d, clear %v", tt.host, tt.mode, r.at.tls, r.at.clearAuth)
		}
	}
}
