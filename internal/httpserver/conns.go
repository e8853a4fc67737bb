package httpserver

import (
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/internal/netguard"
)

const (
	// A client has stallTimeout to read each piece of a response. Less than a piece is due
	// at the end of what the handler writes.
	stallTimeout = 30 * time.Second
	piece        = 64 << 10
	// stallChecks is the time between two checks of a client that does not read.
	stallChecks = time.Second
)

// refusedEvery is the shortest time between two log lines about refused connections.
const refusedEvery = time.Minute

// Limits bound the open connections of HTTP servers.
type Limits struct {
	// Total is the maximum number of connections. 0 means unlimited.
	Total int
	// PerNetwork is the maximum number of connections of one IPv4 address or IPv6
	// /64. 0 means unlimited.
	PerNetwork int
	// Trusted are the networks that PerNetwork does not limit: proxies, whose
	// connections belong to many clients.
	Trusted []netip.Prefix
}

// Conns are the open connections of the HTTP servers that share Limits. At a limit,
// a new connection replaces the one that has had no request for the longest time. If
// all have one, the new connection is closed.
//
// A connection has a request while a handler runs, once the handler has all of it. The
// time before that, when a client sends nothing, a handshake or a part of a head or body,
// costs the client nothing and does not count. Neither does the time in which the client
// reads nothing of the response.
type Conns struct {
	limits Limits
	log    *slog.Logger
	stall  time.Duration // stallTimeout, except in tests

	mu       sync.Mutex
	open     int
	idle     list.List            // of *conn, the longest idle first
	networks map[netip.Prefix]int // open connections
	refused  time.Time            // when a refusal was last logged
}

// NewConns returns Conns with these limits.
func NewConns(limits Limits, log *slog.Logger) *Conns {
	return &Conns{limits: limits, log: log, stall: stallTimeout, networks: map[netip.Prefix]int{}}
}

// Limit applies the limits to s, and returns the listener that s has to serve.
func (c *Conns) Limit(s *http.Server, l net.Listener) net.Listener {
	handler := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if one, ok := r.Context().Value(limitedKey{}).(*conn); ok {
			if r.Body == nil || r.Body == http.NoBody {
				c.setIdle(one, false)
			} else {
				r = r.WithContext(r.Context()) // a copy: net/http looks at the body of its own to skip what is unread
				r.Body = &countedBody{r.Body, one}
			}
		}
		handler.ServeHTTP(w, r)
	})
	s.ConnContext = func(ctx context.Context, nc net.Conn) context.Context {
		return context.WithValue(ctx, limitedKey{}, limited(nc))
	}
	s.ConnState = func(nc net.Conn, to http.ConnState) {
		if one := limited(nc); one != nil && to == http.StateIdle {
			c.setIdle(one, true)
		}
	}
	return limitedListener{l, c}
}

type limitedKey struct{}

// limited returns the connection of the limited listener that nc wraps, or nil.
func limited(nc net.Conn) *conn {
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	one, _ := nc.(*conn)
	return one
}

type limitedListener struct {
	net.Listener
	conns *Conns
}

// Accept implements net.Listener.
func (l limitedListener) Accept() (net.Conn, error) {
	for {
		nc, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.conns.enter(nc); c != nil {
			return c, nil
		}
		_ = nc.Close() // the client may have closed it
	}
}

// enter counts a new connection. It returns nil if the connection must be closed.
func (c *Conns) enter(nc net.Conn) *conn {
	one := &conn{Conn: nc, conns: c, from: c.networkOf(nc.RemoteAddr()), counted: true}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.makeRoom(one.from) {
		c.logRefused(one.from)
		return nil
	}
	c.open++
	c.networks[one.from]++
	one.idle = c.idle.PushBack(one)
	return one
}

// makeRoom closes a connection if there would be too many with one more. It returns
// false if all have requests.
func (c *Conns) makeRoom(from netip.Prefix) bool {
	crowded := from.IsValid() && c.limits.PerNetwork > 0 && c.networks[from] >= c.limits.PerNetwork
	if !crowded && (c.limits.Total == 0 || c.open < c.limits.Total) {
		return true
	}
	for e := c.idle.Front(); e != nil; e = e.Next() {
		if one, _ := e.Value.(*conn); !crowded || one.from == from {
			c.remove(one)
			_ = one.Conn.Close() // its server closes it again
			return true
		}
	}
	return false
}

// logRefused logs that a network gets no connection, but not each time.
func (c *Conns) logRefused(from netip.Prefix) {
	if now := time.Now(); now.Sub(c.refused) >= refusedEvery {
		c.refused = now
		c.log.WarnContext(context.Background(), "no HTTP connection accepted", "network", from, "open", c.open)
	}
}

// networkOf returns the network of a client. That of a trusted proxy is not valid.
func (c *Conns) networkOf(addr net.Addr) netip.Prefix {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	if slices.ContainsFunc(c.limits.Trusted, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return netip.Prefix{}
	}
	return netguard.ClientNetwork(ip)
}

// countedBody is the body of a request. At its end, the connection has the request.
type countedBody struct {
	io.ReadCloser
	conn *conn
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (n int, err error) {
	if n, err = b.ReadCloser.Read(p); errors.Is(err, io.EOF) {
		b.conn.conns.setIdle(b.conn, false)
	}
	return n, err
}

// setIdle notes whether a connection has no request.
func (c *Conns) setIdle(one *conn, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if idle && one.counted && one.idle == nil {
		one.idle = c.idle.PushBack(one)
	}
	if !idle && one.idle != nil {
		c.idle.Remove(one.idle)
		one.idle = nil
	}
}

// remove no longer counts a connection.
func (c *Conns) remove(one *conn) {
	if !one.counted {
		return
	}
	if one.idle != nil {
		c.idle.Remove(one.idle)
		one.idle = nil
	}
	one.counted = false
	c.open--
	if c.networks[one.from]--; c.networks[one.from] == 0 {
		delete(c.networks, one.from)
	}
}

// anyOpen reports whether a connection is open.
func (c *Conns) anyOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > 0
}

// conn is a connection of a limited listener. A client that does not read a piece of a
// response in time is disconnected. One that reads slowly is not.
type conn struct {
	net.Conn
	conns *Conns
	from  netip.Prefix // not valid if it is not counted by network

	// Guarded by the mutex of conns.
	counted bool
	idle    *list.Element // in the list of conns; nil during a request

	deadline atomic.Pointer[time.Time] // for writing, as the server set it
}

// Write implements net.Conn. It tries again in short times, because the system reports
// room only when much of its buffer is free.
func (c *conn) Write(p []byte) (n int, err error) {
	began, read, stalled := time.Now(), 0, false // of the piece
	for {
		next, end := time.Now().Add(min(stallChecks, c.conns.stall)), c.deadline.Load()
		if end != nil && end.Before(next) {
			next = *end
		}
		if err := c.Conn.SetWriteDeadline(next); err != nil {
			return n, err
		}
		some, err := c.Conn.Write(p[n:])
		n += some
		if stalled && some > 0 {
			c.conns.setIdle(c, false)
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if stalled = some == 0; stalled {
			c.conns.setIdle(c, true) // a client that does not read has no claim to its connection
		}
		now := time.Now()
		if read += some; read >= piece {
			began, read = now, 0
		}
		if end != nil && !now.Before(*end) || now.Sub(began) >= c.conns.stall {
			return n, err
		}
	}
}

// SetWriteDeadline implements net.Conn. A Write that runs sees it in stallChecks.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.deadline.Store(&t)
	if t.IsZero() {
		c.deadline.Store(nil)
	}
	return nil
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.conns.mu.Lock()
	c.conns.remove(c)
	c.conns.mu.Unlock()
	return c.Conn.Close()
}

// CloseWrite closes the sending side.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
