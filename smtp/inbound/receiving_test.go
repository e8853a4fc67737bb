package inbound

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// testLog writes to the test's output.
func testLog(t testing.TB) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// newReceiver returns a receiver for the domain of storetest's inboxes.
func newReceiver(t testing.TB, s *store.Store, edits ...func(*ReceiverConfig)) *Receiver {
	t.Helper()
	cfg := ReceiverConfig{Store: s, Domain: storetest.Domain, TempDir: t.TempDir(), Log: testLog(t)}
	for _, edit := range edits {
		edit(&cfg)
	}
	r, err := NewReceiver(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// serve starts a server on a free port. It is shut down when the test ends.
func serve(t testing.TB, r *Receiver, edits ...func(*ServerConfig)) (srv *Server, addr string) {
	t.Helper()
	srv = newServer(t, r, edits...)
	return srv, start(t, srv)
}

// newServer returns a server that does not listen yet.
func newServer(t testing.TB, r *Receiver, edits ...func(*ServerConfig)) *Server {
	t.Helper()
	cfg := ServerConfig{Receiver: r, Hostname: "mx.in.example", MaxSize: 25 << 20, Log: testLog(t), limits: defaultLimits}
	for _, edit := range edits {
		edit(&cfg)
	}
	return NewServer(cfg)
}

// start serves srv on a free port. All replies are checked (row S23).
func start(t testing.TB, srv *Server) (addr string) {
	t.Helper()
	l := listen(t)
	startOn(t, srv, l)
	return l.Addr().String()
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// startOn lets srv serve l, to which clients may have connected already.
func startOn(t testing.TB, srv *Server, l net.Listener) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- srv.Serve(overheard{l, t}) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown() = %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("Serve() = %v", err)
		}
	})
}

// client speaks SMTP by the line.
type client struct {
	t    testing.TB
	conn net.Conn
	r    *bufio.Reader
}

// dial connects without reading the greeting.
func dial(t testing.TB, addr string) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, bufio.NewReader(conn)}
}

// hello connects and introduces itself.
func hello(t testing.TB, addr string) *client {
	t.Helper()
	c := dial(t, addr)
	c.want("220")
	c.cmd("250", "EHLO client.example")
	return c
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(s)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// talk connects, sends everything at once and returns all replies until the
// server closes the connection.
func talk(t testing.TB, addr, say string) string {
	t.Helper()
	return dial(t, addr).rest(say)
}

// codes returns the codes of the replies in text.
func codes(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if len(line) > 3 && line[3] == ' ' {
			all = append(all, line[:3])
		}
	}
	return all
}

// want reads a reply and checks how it begins. It returns all of its lines.
func (c *client) want(prefix string) string {
	c.t.Helper()
	var all strings.Builder
	for {
		line, err := c.r.ReadString('\n')
		all.WriteString(line)
		if err != nil {
			c.t.Fatalf("reply %q: %v, want %s", all.String(), err, prefix)
		}
		if len(line) > 3 && line[3] == ' ' {
			break
		}
	}
	if last := all.String(); !strings.HasPrefix(last, prefix) {
		c.t.Fatalf("reply %q, want %s", last, prefix)
	}
	return all.String()
}

// cmd sends a command and checks how the reply begins.
func (c *client) cmd(prefix, format string, args ...any) string {
	c.t.Helper()
	c.send(fmt.Sprintf(format, args...) + "\r\n")
	return c.want(prefix)
}

// wantClosed checks that the server has hung up.
func (c *client) wantClosed() {
	c.t.Helper()
	if b, err := c.r.ReadByte(); err == nil {
		rest, _ := c.r.Peek(c.r.Buffered())
		c.t.Fatalf("got %q, want the connection closed", string(b)+string(rest))
	}
}

// begin gives envelope and DATA.
func (c *client) begin(from string, to ...string) {
	c.t.Helper()
	c.cmd("250", "MAIL FROM:<%s>", from)
	for _, rcpt := range to {
		c.cmd("250", "RCPT TO:<%s>", rcpt)
	}
	c.cmd("354", "DATA")
}

// upgrade starts TLS after the reply to STARTTLS.
func (c *client) upgrade() {
	c.t.Helper()
	conn := tls.Client(c.conn, &tls.Config{InsecureSkipVerify: true})
	if err := conn.HandshakeContext(c.t.Context()); err != nil {
		c.t.Fatalf("handshake: %v", err)
	}
	c.conn, c.r = conn, bufio.NewReader(overheardReader{conn, c.t})
}

// rawMail is a small one.
func rawMail(lines ...string) string {
	head := []string{"From: Ann <ann@out.example>", "Subject: Hello", "Message-ID: <1@out.example>", ""}
	return strings.Join(append(head, lines...), "\r\n") + "\r\n"
}

// list returns the messages of an inbox, newest first.
func list(t testing.TB, s *store.Store, in store.Inbox) []store.Message {
	t.Helper()
	var all []store.Message
	for page := (store.Page{Limit: 100}); ; {
		l, err := s.ListMessages(t.Context(), store.MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq, WithText: true}, page)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, l.Rows...); l.Cursor == "" {
			return all
		}
		page.Cursor = l.Cursor
	}
}

// only returns the one message of an inbox.
func only(t testing.TB, s *store.Store, in store.Inbox) store.Message {
	t.Helper()
	ms := list(t, s, in)
	if len(ms) != 1 {
		t.Fatalf("%s has %d messages, want 1", in.Address, len(ms))
	}
	return ms[0]
}

// tlsConfig returns a configuration with a certificate of its own making.
func tlsConfig(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"mx.in.example"}}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}
