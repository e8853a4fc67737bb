package inbound

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store"
)

// keeper takes mail for bot@in.example and keeps it, as a Receiver without a
// store.
type keeper struct {
	spools *spool.Folder
	kept   []string
	fault  error // what storing ends in
}

func (k *keeper) target(_ context.Context, rcpt string) (target, error) {
	local, tag, domain := smtp.SplitAddress(rcpt)
	if local+"@"+domain != bot {
		return target{}, replyNoInbox
	}
	return target{rcpt: rcpt, inbox: store.Mailbox{Seq: 1}, tag: tag}, nil
}

func (k *keeper) hasRoom([]target) error { return nil }

func (k *keeper) NewSpool() *spool.Spool { return k.spools.New() }

func (k *keeper) close(_ context.Context, raw *spool.Spool) { _ = raw.Close() }

func (k *keeper) deliver(_ context.Context, _ smtp.Envelope, to []target, raw *spool.Spool, _ []*store.Attempt) ([]store.Message, error) {
	if len(to) == 0 {
		panic("a message without recipients")
	}
	if k.fault != nil {
		return nil, k.fault
	}
	r, err := raw.Reader()
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(r)
	k.kept = append(k.kept, string(b))
	return nil, err
}

// scriptConn is a connection on which a client says what in holds, and hangs up.
type scriptConn struct {
	net.Conn // nil
	in       io.Reader
	out      bytes.Buffer
	closed   chan struct{}
}

func (c *scriptConn) Read(b []byte) (int, error)       { return c.in.Read(b) }
func (c *scriptConn) Write(b []byte) (int, error)      { return c.out.Write(b) }
func (c *scriptConn) Close() error                     { close(c.closed); return nil }
func (c *scriptConn) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)} }
func (c *scriptConn) SetDeadline(time.Time) error      { return nil }
func (c *scriptConn) SetReadDeadline(time.Time) error  { return nil }
func (c *scriptConn) SetWriteDeadline(time.Time) error { return nil }

// keeping returns a server for one goroutine and the keeper of its mail.
func keeping(t testing.TB, edits ...func(*ServerConfig)) (*Server, *keeper) {
	t.Helper()
	p, err := spool.Open(t.TempDir(), 1<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	cfg := ServerConfig{Hostname: "mx.in.example", MaxSize: 100_000, Log: slog.New(slog.DiscardHandler), limits: defaultLimits}
	cfg.MaxRecipients = 3
	for _, edit := range edits {
		edit(&cfg)
	}
	srv, k := NewServer(cfg), &keeper{spools: p}
	srv.receiver = k
	if cfg.Submission != nil {
		submitsToKeeper(&cfg, k)
		srv.sameHost = func(netip.Addr) bool { return true } // so that it offers AUTH
	}
	srv.unknownRcpts.now = func() time.Time { return time.Time{} }
	return srv, k
}

// converse runs a session with the input in and returns all replies.
func converse(t testing.TB, srv *Server, in io.Reader) string {
	t.Helper()
	conn := &scriptConn{in: in, closed: make(chan struct{})}
	run(t, srv, newConn(srv, conn))
	<-conn.closed
	checkReplies(t, conn.out.Bytes())
	if strings.Contains(conn.out.String(), "421 4.0.0") {
		t.Error("a panic")
	}
	return conn.out.String()
}

// run admits c and serves it in the background, until it closes its connection.
func run(t testing.TB, srv *Server, c *conn) {
	t.Helper()
	if r := srv.conns.enter(c); r != nil {
		t.Fatal(r)
	}
	if err := srv.engine.Serve(&oneConn{conn: c}); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
}

// oneConn is a listener with one connection.
type oneConn struct {
	net.Listener
	conn net.Conn
}

func (l *oneConn) Accept() (net.Conn, error) {
	c := l.conn
	if c == nil {
		return nil, net.ErrClosed
	}
	l.conn = nil
	return c, nil
}

// states are the ways into a session at which the fuzzer takes over.
var states = []string{
	"",
	"EHLO x\r\n",
	"EHLO x\r\nMAIL FROM:<a@out.example>\r\n",
	"EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<bot@in.example>\r\n",
	"EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<bot@in.example>\r\nDATA\r\n",
}

// FuzzSession sends arbitrary input in any state (S25). Nothing may panic or
// hang, replies are well formed, and stored messages have whole lines, also if
// the server normalizes.
func FuzzSession(f *testing.F) {
	seeds := []string{
		"", "QUIT\r\n", "EHLO [192.0.2.1]\r\nMAIL FROM:<> SIZE=10 BODY=8BITMIME SMTPUTF8\r\n", "RCPT TO:<\"a b\"@in.example>\r\n",
		"RCPT TO:<@x,@y:bot+tag@in.example>\r\nDATA\r\nA: b\r\n\r\n..\r\n.\r\n", "Subject: a\r\n\r\n.b\r\n.\r\nRSET\r\n", "a\n.\n", "a\r\n.\r", "a\x00\r\n.\r\n",
		"BDAT 3 LAST\r\na\r\n", "BDAT 0\r\nBDAT 1\r\naBDAT 1 LAST\r\nb", "BDAT 99999999\r\n", "BDAT -1\r\n", "STARTTLS\r\n", "NOOP\rNOOP\r\n", "NOOP\n",
		"MAIL FROM:<\xff@x>\r\n", "RCPT TO:<\u00e4@in.example>\r\n", "GET / HTTP/1.1\r\n", strings.Repeat("x", maxCommandLine), strings.Repeat("BAD\r\n", 25),
		strings.Repeat("NOOP\r\n", 120), "RCPT TO:<bot@in.example>\r\nRCPT TO:<bot@in.example>\r\nRCPT TO:<bot@in.example>\r\nRCPT TO:<bot@in.example>\r\n",
	}
	for state := range states {
		for _, s := range seeds {
			f.Add(byte(state), []byte(s))
		}
	}
	strict, kept := keeping(f)
	normalizing, normalized := keeping(f, func(c *ServerConfig) { c.Normalize = true })
	f.Fuzz(func(t *testing.T, state byte, in []byte) {
		say := states[int(state)%len(states)] + string(in)
		for srv, k := range map[*Server]*keeper{strict: kept, normalizing: normalized} {
			for _, r := range []io.Reader{strings.NewReader(say), iotest.OneByteReader(strings.NewReader(say))} {
				k.kept = nil
				said := converse(t, srv, r)
				if n := strings.Count(said, "Message stored"); n != len(k.kept) {
					t.Errorf("%d messages kept, %d replies that one is stored", len(k.kept), n)
				}
				for _, m := range k.kept {
					if strings.ContainsAny(strings.ReplaceAll(m, "\r\n", ""), "\r\n\x00") || int64(len(m)) > srv.cfg.MaxSize {
						t.Errorf("kept %q", m)
					}
				}
			}
		}
	})
}
