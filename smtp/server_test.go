package smtp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postroom/postroom/store/storetest"
)

func TestServerLimitsConnections(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, storetest.OpenSQLite(t))
	tests := []struct {
		name      string
		edit      func(*ServerConfig)
		refusal   string
		fromOther bool // another address may still come in
	}{
		{"from one address", func(c *ServerConfig) { c.MaxConnsPerIP = 2 }, "421 4.7.0 Too many connections from your address", true},
		{"in all", func(c *ServerConfig) { c.MaxConns = 2 }, "421 4.7.0 Too many connections, ", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, addr := serve(t, r, tt.edit)
			first, second := hello(t, addr), hello(t, addr)
			third := dial(t, addr)
			third.want(tt.refusal)
			third.wantClosed()

			from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
			conn, err := from.DialContext(t.Context(), "tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			want := "220"
			if !tt.fromOther {
				want = "421"
			}
			if b := make([]byte, 3); readFull(t, conn, b) != want {
				t.Errorf("another address is answered with %s, want %s", b, want)
			}
			_ = conn.Close()

			first.cmd("221", "QUIT")
			first.wantClosed()
			second.cmd("250", "NOOP")
			hello(t, addr) // there is room again
		})
	}
}

func readFull(t *testing.T, r io.Reader, b []byte) string {
	t.Helper()
	if _, err := io.ReadFull(r, b); err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestServerTimeouts(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	const short = 50 * time.Millisecond
	command := func(c *ServerConfig) { c.CommandTimeout = short }
	data := func(c *ServerConfig) { c.DataTimeout = short }
	whole := func(c *ServerConfig) { c.TransactionTimeout = short }
	envelope := "EHLO client.example\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<" + in.Address + ">\r\n"
	tests := []struct {
		name    string
		edit    func(*ServerConfig)
		say     string // all of it at once, so that no slow machine looks like a slow client
		replies int
	}{
		{"for a command", command, "EHLO client.example\r\n", 2},
		{"for the end of a command, which is not run", command, envelope + "DATA", 4},
		{"for data", data, envelope + "DATA\r\nSubject: a\r\n", 5},
		{"for the end of the data", data, envelope + "DATA\r\nSubject: a\r\n.", 5},
		{"for a chunk", data, envelope + "BDAT 10\r\nabc", 4},
		{"for the whole transaction", whole, envelope + "DATA\r\nSubject: a\r\n", 5},
	}
	t.Run("to wait", func(t *testing.T) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				_, addr := serve(t, newReceiver(t, s), tt.edit)
				c := dial(t, addr)
				c.send(tt.say)
				for range tt.replies {
					c.want("")
				}
				c.want("421 4.4.2")
				c.wantClosed()
			})
		}
	})
	if n := len(list(t, s, in)); n != 0 {
		t.Errorf("%d messages", n)
	}
}

// A slow client that never stops sending is bound by the time of the whole
// transaction, not by that of each piece.
func TestServerBoundsAClientThatTrickles(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.TransactionTimeout = 100 * time.Millisecond })
	c := hello(t, addr)
	c.begin("a@out.example", in.Address)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, err := c.conn.Write([]byte("x")); err != nil {
				return
			}
		}
	}()
	c.want("421 4.4.2")
	_ = c.conn.Close()
	<-done
}

func TestServerShutdown(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	srv, addr := serve(t, newReceiver(t, s))
	idle, between, sending, chunked := hello(t, addr), hello(t, addr), hello(t, addr), hello(t, addr)
	between.cmd("250", "MAIL FROM:<a@out.example>")
	sending.begin("a@out.example", in.Address)
	sending.send("Subject: in flight\r\n")
	chunked.cmd("250", "MAIL FROM:<a@out.example>")
	chunked.cmd("250", "RCPT TO:<%s>", in.Address)
	chunked.send("BDAT 20 LAST\r\nSubject: ")
	for waiting(srv) != 2 { // until the chunk has begun
		runtime.Gosched()
	}

	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(t.Context()) }()
	idle.want("421 4.3.2")
	idle.wantClosed()
	between.want("421 4.3.2")
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("a new connection is taken")
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown() = %v while data is coming in", err)
	default:
	}

	sending.send("\r\nHi.\r\n.\r\nMAIL FROM:<a@out.example>\r\n")
	sending.want("250")
	sending.want("421 4.3.2")
	sending.wantClosed()
	chunked.send("chunk\r\n\r\nab")
	chunked.want("250")
	chunked.want("421 4.3.2")
	if err := <-done; err != nil {
		t.Errorf("Shutdown() = %v", err)
	}
	if n := len(list(t, s, in)); n != 2 {
		t.Errorf("%d messages, want both that were in flight", n)
	}
}

// waiting counts the sessions that wait for a command.
func waiting(s *Server) (n int) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for w := range s.conns.open {
		w.mu.Lock()
		if w.waiting {
			n++
		}
		w.mu.Unlock()
	}
	return n
}

func TestServerShutdownBreaksOffWhenTimeIsUp(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	srv, addr := serve(t, newReceiver(t, s))
	c := hello(t, addr)
	c.begin("a@out.example", in.Address)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := srv.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown() = %v, want %v", err, context.DeadlineExceeded)
	}
	c.wantClosed()
}

func TestServerStartTLS(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.TLS = tlsConfig(t); c.MaxConns = 1 })
	c := hello(t, addr)
	c.cmd("501 5.5.4", "STARTTLS now")
	c.cmd("250", "MAIL FROM:<a@out.example>")
	c.cmd("250", "RCPT TO:<%s>", in.Address)
	c.cmd("220", "STARTTLS")
	c.upgrade()

	c.cmd("502", "MAIL FROM:<a@out.example>") // EHLO is forgotten
	if offers := c.cmd("250", "EHLO client.example"); strings.Contains(offers, "STARTTLS") {
		t.Errorf("STARTTLS is offered again: %s", offers)
	}
	c.cmd("502", "STARTTLS")
	c.cmd("502", "DATA") // and so are the recipients
	raw := sized(100_000)
	c.begin("a@out.example", in.Address)
	c.send(raw + ".\r\n")
	c.want("250")
	if m := only(t, s, in); readRaw(t, s, m) != raw {
		t.Error("what came over TLS is not what is stored")
	}
	c.cmd("221", "QUIT")
	c.wantClosed()
	hello(t, addr) // the one place is free again
}

// What comes in clear behind STARTTLS is never run (S5, CVE-2011-0411).
func TestServerStartTLSDropsWhatWasInjected(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	_, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.TLS = tlsConfig(t) })
	for range 20 {
		c := hello(t, addr)
		c.send("STARTTLS\r\nEHLO injected\r\nMAIL FROM:<evil@out.example>\r\n")
		c.want("220")
		c.upgrade()
		c.cmd("250", "NOOP") // answered by one reply, and first
		c.cmd("502", "MAIL FROM:<a@out.example>")
		_ = c.conn.Close()
	}
}

func TestServerHandshakeThatFails(t *testing.T) {
	t.Parallel()
	_, addr := serve(t, newReceiver(t, storetest.OpenSQLite(t)), func(c *ServerConfig) { c.TLS = tlsConfig(t) })
	c := hello(t, addr)
	c.cmd("220", "STARTTLS")
	c.send("EHLO in clear\r\n")
	if b, err := io.ReadAll(c.r); err == nil && strings.Contains(string(b), "250") {
		t.Errorf("commands in clear are answered after STARTTLS: %q", b)
	}
	hello(t, addr)
}

func TestServerLeavesNothingBehind(t *testing.T) {
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	before := goleak.IgnoreCurrent()
	fds := openFiles(t)
	r := newReceiver(t, s)
	srv := NewServer(ServerConfig{Receiver: r, Hostname: "mx.in.example", TLS: tlsConfig(t), Log: testLog(t)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	for i := range 10 {
		c := hello(t, l.Addr().String())
		if i%2 == 0 {
			c.cmd("220", "STARTTLS")
			c.upgrade()
			c.cmd("250", "EHLO client.example")
		}
		c.begin("a@out.example", in.Address)
		if i%3 == 0 {
			_ = c.conn.Close() // in the middle
			continue
		}
		c.send(mail(strings.Repeat("x\r\n", 1<<17)) + ".\r\n") // by way of a file
		c.want("250")
		_ = c.conn.Close()
	}
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
	if n := openFiles(t); n > fds {
		t.Errorf("%d files open, %d before", n, fds)
	}
	if left, err := os.ReadDir(r.spools.dir); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
	if n := r.spools.budget.Load(); n != defaultSpoolMemory {
		t.Errorf("budget is %d, want %d", n, defaultSpoolMemory)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	l, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc here")
	}
	return len(l)
}

func TestServerServesManyAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	_, addr := serve(t, newReceiver(t, s))
	const clients, mails = 20, 5
	t.Run("clients", func(t *testing.T) {
		for i := range clients {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				c := hello(t, addr)
				for n := range mails {
					c.begin("a@out.example", in.Address)
					c.send(fmt.Sprintf("Subject: %d of %d\r\n\r\n.\r\n", n, i))
					c.want("250")
				}
				c.cmd("221", "QUIT")
			})
		}
	})
	if n := len(list(t, s, in)); n != clients*mails {
		t.Errorf("%d messages, want %d", n, clients*mails)
	}
}

func TestServerShutDownBeforeItServes(t *testing.T) {
	t.Parallel()
	srv := NewServer(ServerConfig{Receiver: newReceiver(t, storetest.OpenSQLite(t)), Log: testLog(t)})
	if err := srv.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Serve(l); err != nil {
		t.Errorf("Serve() = %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}
