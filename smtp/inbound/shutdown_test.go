package inbound

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/postroom/postroom/store/storetest"
)

func TestServerShutdown(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	srv, addr := serve(t, newReceiver(t, s))
	idle, between, sending := hello(t, addr), hello(t, addr), hello(t, addr)
	between.cmd("250", "MAIL FROM:<a@out.example>")
	sending.begin("a@out.example", in.Address)
	sending.send("Subject: in flight\r\n")
	awaitWaiting(t, srv, 3)

	done := make(chan error, 1)
	go func() { done <- srv.Shutdown(t.Context()) }()
	idle.want("421 4.4.2")
	idle.wantClosed()
	between.want("421 4.4.2")
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("a new connection is accepted")
	}
	select {
	case err := <-done:
		t.Fatalf("Shutdown() = %v while data is coming in", err)
	default:
	}

	sending.send("\r\nHi.\r\n.\r\nMAIL FROM:<a@out.example>\r\n")
	sending.want("250")
	sending.want("421 4.4.2")
	sending.wantClosed()
	if err := <-done; err != nil {
		t.Errorf("Shutdown() = %v", err)
	}
	if n := len(list(t, s, in)); n != 1 {
		t.Errorf("%d messages, want the one that was in flight", n)
	}
}

// awaitWaiting returns when n sessions wait for their clients.
func awaitWaiting(t testing.TB, s *Server, n int) {
	t.Helper()
	for began := time.Now(); countWaiting(s) != n; runtime.Gosched() {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%d sessions wait for their clients, want %d", countWaiting(s), n)
		}
	}
}

// countWaiting counts the sessions that wait for their clients.
func countWaiting(s *Server) (n int) {
	s.conns.mu.Lock()
	defer s.conns.mu.Unlock()
	for w := range s.conns.open {
		w.mu.Lock()
		if !w.idle.IsZero() {
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

func TestServerLeavesNothingBehind(t *testing.T) {
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	before := goleak.IgnoreCurrent()
	fds := openFiles(t)
	r := newReceiver(t, s)
	srv := NewServer(ServerConfig{Receiver: r, Hostname: "mx.in.example", MaxSize: 25 << 20, TLS: tlsConfig(t), Log: testLog(t)})
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
		c.send(rawMail(strings.Repeat("x\r\n", 1<<17)) + ".\r\n") // by way of a file
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
	if left, err := os.ReadDir(r.cfg.TempDir); err != nil || len(left) > 0 {
		t.Errorf("temporary files left: %v, %v", left, err)
	}
	if n := r.spools.Left(); n != spoolMemory {
		t.Errorf("budget is %d, want %d", n, spoolMemory)
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
