package inbound

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store/storetest"
)

// dialFrom connects from a loopback address of the test's choice.
func dialFrom(t testing.TB, ip, addr string) *client {
	t.Helper()
	d := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	conn, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, bufio.NewReader(conn)}
}

func ipv4(n int) netip.Addr {
	return netip.MustParseAddr(fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255))
}

// S15: one address has 50 connections, an IPv6 one and its /64 together.
func TestConnectionsOfOneNetworkAreLimited(t *testing.T) {
	t.Parallel()
	srv := newServer(t, nil)
	enter := func(ip string) *smtp.Reply {
		conn := &scriptConn{in: strings.NewReader("")}
		w := newWire(srv, conn)
		w.ip = netip.MustParseAddr(ip)
		w.from = network(w.ip)
		return srv.conns.enter(w)
	}
	for _, who := range []struct{ first, other string }{
		{"192.0.2.1", "192.0.2.2"},
		{"2001:db8:0:1::1", "2001:db8:0:2::1"},
	} {
		for i := range 50 {
			if r := enter(who.first); r != nil {
				t.Fatalf("%s: connection %d: %v", who.first, i+1, r)
			}
		}
		if r := enter(who.first); r != replyCrowdedIP {
			t.Errorf("%s: connection 51: %v", who.first, r)
		}
		if r := enter(who.other); r != nil {
			t.Errorf("%s: %v", who.other, r)
		}
	}
	if r := enter("2001:db8:0:1:ffff::7"); r != replyCrowdedIP {
		t.Errorf("another address of a crowded /64: %v", r)
	}
	if a, b := network(netip.MustParseAddr("192.0.2.1")), network(netip.MustParseAddr("::ffff:192.0.2.1").Unmap()); a != b {
		t.Errorf("%v is not %v", a, b)
	}
}

// The limit is 1,000 connections. If all are active, one more is refused for
// now (S15).
func TestAllConnectionsAreLimited(t *testing.T) {
	t.Parallel()
	srv := newServer(t, nil)
	enter := func(n int) (*wire, *smtp.Reply) {
		w := newWire(srv, &scriptConn{in: strings.NewReader("")})
		w.from = network(ipv4(n))
		return w, srv.conns.enter(w)
	}
	var last *wire
	for n := range 1000 {
		w, r := enter(n)
		if r != nil {
			t.Fatalf("connection %d: %v", n+1, r)
		}
		last = w
	}
	if _, r := enter(1000); r != replyCrowded || r.Code != 421 || r.Enhanced != "4.7.0" {
		t.Errorf("connection 1,001: %v", r)
	}
	srv.conns.leave(last)
	if _, r := enter(1001); r != nil {
		t.Errorf("after one has left: %v", r)
	}
}

// At the limit, the client that has been idle for longest is disconnected, and
// one outside a transaction before all others.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	onPorts(t, func(t *testing.T, p port) {
		s := storetest.OpenSQLite(t)
		in := botInbox(t, s)
		srv := newServer(t, newReceiver(t, s), p.kind, func(c *ServerConfig) { c.MaxConns = 3 })
		srv.conns.shedIdle, srv.conns.shedInMail = time.Hour, 50*time.Hour // no client is idle for that long by accident
		addr := start(t, srv)
		idle, inMail, sending := hello(t, addr), hello(t, addr), hello(t, addr)
		inMail.cmd("250", "MAIL FROM:<a@out.example>")
		sending.begin("a@out.example", bot)
		awaitWaiting(t, srv, 2)

		fresh := dial(t, addr)
		fresh.want("421 4.7.0 Too many connections")
		age(srv, time.Hour)
		last := hello(t, addr)
		idle.want("421 4.7.0 Idle while others wait")
		idle.wantClosed()
		inMail.cmd("250", "RCPT TO:<%s>", bot)

		awaitWaiting(t, srv, 2)
		age(srv, 48*time.Hour)
		hello(t, addr)
		last.want("421 4.7.0 Idle")
		awaitWaiting(t, srv, 2)
		for range 3 { // first the one outside a transaction, then those inside, the longest idle first
			age(srv, 50*time.Hour)
			hello(t, addr).cmd("250", "MAIL FROM:<b@out.example>")
		}
		inMail.want("421")
		sending.want("421")
		sending.wantClosed()
		if n := len(list(t, s, in)); n != 0 {
			t.Errorf("%d messages", n)
		}
	})
}

// age makes every client that is waited for look d more idle.
func age(srv *Server, d time.Duration) {
	srv.conns.mu.Lock()
	defer srv.conns.mu.Unlock()
	for w := range srv.conns.open {
		if since := w.idleSince.Load(); since != 0 {
			w.idleSince.CompareAndSwap(since, since-int64(d))
		}
	}
}

// A client that is shed while its command arrives gets the reply first.
func TestShedClientGetsItsReply(t *testing.T) {
	t.Parallel()
	srv := newServer(t, nil)
	ours, theirs := net.Pipe()
	w := newWire(srv, ours)
	if r := srv.conns.enter(w); r != nil {
		t.Fatal(r)
	}
	w.mu.Lock()
	w.shedded = true // it was read already
	w.mu.Unlock()
	srv.conns.leaving++
	serveAdmitted(t, srv, w)
	b, err := io.ReadAll(theirs)
	if err != nil || !strings.Contains(string(b), "421 4.7.0 Idle") {
		t.Errorf("%q, %v", b, err)
	}
	srv.running.Wait()
	if n := srv.conns.leaving; n != 0 {
		t.Errorf("%d are still leaving", n)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	const rate, grace = 500, time.Minute
	for bytes, want := range map[int64]time.Duration{
		0: grace, 1: grace, 29_999: grace, 30_000: grace, 30_500: 61 * time.Second, 25 << 20: 52428*time.Second + 800*time.Millisecond,
	} {
		p := pace{began: began, bytes: bytes}
		if got := p.limit(rate, grace).Sub(began); got != want {
			t.Errorf("%d bytes: more must come within %v, want %v", bytes, got, want)
		}
	}
}

// Many who come at once each get a place of their own, though those who made
// room are not gone yet. When too many of them are not, the next one waits for
// one to be.
func TestManyMakeRoomAtOnce(t *testing.T) {
	t.Parallel()
	srv := newServer(t, nil)
	client := func(n int) *wire {
		w := newWire(srv, &scriptConn{in: strings.NewReader("")})
		w.from = network(ipv4(n))
		return w
	}
	var idle []*wire
	for n := range 1000 {
		w := client(n)
		w.earned = time.Now().Add(-time.Minute)
		if r := srv.conns.enter(w); r != nil {
			t.Fatalf("connection %d: %v", n+1, r)
		}
		if err := w.startWaiting(forCommand, time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		idle = append(idle, w)
	}
	for n := range maxLeaving {
		if r := srv.conns.enter(client(1000 + n)); r != nil {
			t.Fatalf("one more, %d: %v", n+1, r)
		}
	}
	srv.conns.enterWait = time.Millisecond
	if r := srv.conns.enter(client(5000)); r != replyCrowded {
		t.Errorf("while %d are on their way out: %v", maxLeaving, r)
	}
	srv.conns.enterWait = time.Minute
	entered := make(chan *smtp.Reply)
	go func() { entered <- srv.conns.enter(client(5001)) }()
	for _, w := range idle {
		if w.shedded {
			srv.conns.leave(w)
			break
		}
	}
	if r := <-entered; r != nil {
		t.Errorf("after one of them has left: %v", r)
	}
}

// Neither a disconnected client that stays, nor one that reads no replies, keeps
// its connection when another needs it.
func TestClientsThatHoldOnMakeRoom(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	botInbox(t, s)
	for name, say := range map[string]string{
		"after the last word": strings.Repeat("x", 2*maxCommandLine),
		"deaf":                states[3] + strings.Repeat("BDAT 1\r\nx", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, addr := serve(t, newReceiver(t, s), func(c *ServerConfig) { c.MaxConns = 1 })
			holding := dial(t, addr)
			if err := holding.conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = holding.conn.Write([]byte(say)) }() // the server stops reading
			var c *client
			began := time.Now()
			for reply := ""; !strings.HasPrefix(reply, "220"); reply = c.want("") {
				if time.Since(began) > 20*time.Second { // less than it could stay for otherwise
					t.Fatal("it keeps its place")
				}
				age(srv, time.Hour) // it may be busy just now
				c = dial(t, addr)
			}
			c.cmd("221", "QUIT")
			_ = holding.conn.Close()
		})
	}
}
