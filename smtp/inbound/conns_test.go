package inbound

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/netguard"
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

// S15: one address has 50 connections, an IPv6 one and its /64 together, and all have
// 1,000.
func TestConnectionsOfOneNetworkAreLimited(t *testing.T) {
	t.Parallel()
	srv := newServer(t, nil)
	enter := func(ip string) *smtp.Reply {
		conn := &scriptConn{in: strings.NewReader("")}
		w := newConn(srv, conn)
		w.ip = netip.MustParseAddr(ip)
		w.from = netguard.ClientNetwork(w.ip)
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
	if most := srv.conns.max; most != 1000 {
		t.Errorf("%d connections in all", most)
	}
	if a, b := netguard.ClientNetwork(netip.MustParseAddr("192.0.2.1")), netguard.ClientNetwork(netip.MustParseAddr("::ffff:192.0.2.1").Unmap()); a != b {
		t.Errorf("%v is not %v", a, b)
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
		srv.conns.minIdle, srv.conns.mailGrace = time.Hour, 50*time.Hour // no client is idle for that long by accident
		addr := start(t, srv)
		idle, inMail, sending := hello(t, addr), hello(t, addr), hello(t, addr)
		inMail.cmd("250", "MAIL FROM:<a@out.example>")
		sending.begin("a@out.example", bot)
		awaitWaiting(t, srv, 3)

		fresh := dial(t, addr)
		fresh.want("421 4.7.0 Too many connections")
		age(srv, time.Hour)
		last := hello(t, addr)
		idle.want("421 4.4.2")
		idle.wantClosed()
		inMail.cmd("250", "RCPT TO:<%s>", bot)

		awaitWaiting(t, srv, 3)
		age(srv, 48*time.Hour)
		hello(t, addr)
		last.want("421 4.4.2")
		awaitWaiting(t, srv, 3)
		for range 3 { // the one outside a transaction, and then those inside
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
	for c := range srv.conns.open {
		c.mu.Lock()
		if !c.idle.IsZero() {
			c.idle = c.idle.Add(-d)
		}
		c.mu.Unlock()
	}
}
