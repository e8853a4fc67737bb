package smtptest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"
)

// ChangingDNS is a DNS server over UDP whose zones can be replaced while it runs.
// It forwards queries to a server with the current zones.
type ChangingDNS struct {
	conn   net.PacketConn
	server atomic.Value // host:port
}

// NewChangingDNS starts a DNS server without zones.
func NewChangingDNS(t testing.TB) *ChangingDNS {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("fake DNS: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // test socket
	d := &ChangingDNS{conn: conn}
	d.Set(t, nil)
	go d.serve()
	return d
}

// Addr is the server's host:port.
func (d *ChangingDNS) Addr() string { return d.conn.LocalAddr().String() }

// Set replaces all zones. The caller must not change them afterwards.
func (d *ChangingDNS) Set(t testing.TB, zones Zones) {
	t.Helper()
	d.server.Store(NewDNS(t, zones))
}

// serve forwards queries until the socket is closed.
func (d *ChangingDNS) serve() {
	buf := make([]byte, 1<<16)
	for {
		n, from, err := d.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		go d.pass(append([]byte(nil), buf[:n]...), from)
	}
}

// pass forwards one query. If it fails, the client retries.
func (d *ChangingDNS) pass(question []byte, from net.Addr) {
	conn, err := new(net.Dialer).DialContext(context.Background(), "udp", d.server.Load().(string)) //nolint:forcetypeassert // nothing else is stored
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }() // test socket
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := conn.Write(question); err != nil {
		return
	}
	response := make([]byte, 1<<16)
	if n, err := conn.Read(response); err == nil {
		_, _ = d.conn.WriteTo(response[:n], from) // the client may have disconnected
	}
}
