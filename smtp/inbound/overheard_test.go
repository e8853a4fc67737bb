package inbound

import (
	"bytes"
	"crypto/tls"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// overheard is the listener of every server in these tests. It checks that no
// reply exposes internals (row S23).
type overheard struct {
	net.Listener
	t testing.TB
}

// Accept implements net.Listener.
func (l overheard) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &overheardConn{conn.(*net.TCPConn), l.t}, nil
}

type overheardConn struct {
	*net.TCPConn
	t testing.TB
}

// Write implements net.Conn.
func (c *overheardConn) Write(b []byte) (int, error) {
	if !encrypted(b) {
		checkReplies(c.t, b)
	}
	return c.TCPConn.Write(b)
}

// encrypted reports whether b is a TLS record, whose content the client checks.
func encrypted(b []byte) bool { return len(b) > 2 && b[0] >= 20 && b[0] <= 23 && b[1] == 3 }

// overheardReader checks replies under TLS.
type overheardReader struct {
	*tls.Conn
	t testing.TB
}

// Read implements io.Reader.
func (r overheardReader) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	if n > 0 {
		checkReplies(r.t, b[:n])
	}
	return n, err
}

var (
	replyLine = regexp.MustCompile(`^(220|250)[ -][A-Za-z0-9 .=-]*\r\n$|^354 [ -~]+\r\n$|^334 [A-Za-z0-9+/=]*\r\n$|^(2|4|5)\d\d (2|4|5)\.\d\.\d\d? [A-Za-z][ -~]+\r\n$`)
	// inside are words of Go, of the databases and of the machine that no client
	// may read: error texts, paths, addresses.
	inside = regexp.MustCompile(`(?i)0x|\.go\b|goroutine|panic|runtime|nil|sql|pq:|postgres|database|store|errno|syscall|` +
		`eof|i/o|timeout:|context|deadline|connection reset|read tcp|no such file|denied:|/var|\\|\b\d+\.\d+\.\d+\.\d+\b|::|localhost`)
	storedWord = []byte("Message stored")
	// echoed is what the library repeats of the client's words.
	echoed = regexp.MustCompile(`<[^>\r\n]*>+|errors, .+ command|Hello \S+`)
)

// fine are replies that passed before.
var fine sync.Map

func checkReplies(t testing.TB, b []byte) {
	for line := range bytes.Lines(b) {
		if _, known := fine.Load(string(line)); known {
			continue
		}
		words := echoed.ReplaceAll(bytes.ReplaceAll(line, storedWord, nil), nil)
		m := replyLine.FindSubmatch(echoed.ReplaceAll(line, nil))
		switch {
		case m == nil:
			t.Errorf("S23: %q is not a reply", line)
		case len(m[2]) > 0 && m[2][0] != m[3][0]:
			t.Errorf("S23: the codes of %q disagree", line)
		case inside.Match(words) && !bytes.HasPrefix(line, []byte("334 ")), len(line) > 512: // RFC 5321 section 4.5.3.1.5
			t.Errorf("S23: %q shows too much", line)
		default:
			fine.Store(string(line), nil)
		}
	}
}

// Row S23 of docs/testing.md.
func TestRepliesAreOverheard(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		"554 5.0.0 Error: transaction failed: read tcp 127.0.0.1:25: i/o timeout\r\n", "451 4.3.0 open /var/lib/x: no such file\r\n",
		"451 4.3.0 sql: database is closed\r\n", "250 OK\x00\r\n", "554 4.3.0 No\r\n", "250 2.0.0 OK\n", "451 4.3.0 " + strings.Repeat("x", 600) + "\r\n",
		"451 4.3.0 Peer 10.0.0.7 is away\r\n", "421 4.3.0 runtime error\r\n",
	} {
		var heard silentTB
		checkReplies(&heard, []byte(bad))
		if heard.errors == 0 {
			t.Errorf("%q passes", bad)
		}
	}
}

// silentTB counts errors instead of failing.
type silentTB struct {
	testing.TB
	errors int
}

func (s *silentTB) Errorf(string, ...any) { s.errors++ }
