package inbound

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/postroom/postroom/smtp"
)

// conns counts the open connections of a server, in total and by network.
//
// When the limit is reached, an idle client makes room for a new one: first the client
// that has been idle for longest outside a transaction, then one inside. Idleness is
// measured from the useful work of a client (conn.useful): occasional bytes or pointless
// commands do not count.
type conns struct {
	max, perNetwork      int
	shedIdle, shedInMail time.Duration // the constants, except in tests

	mu        sync.Mutex
	open      map[*conn]struct{} // without those that are closed to make room
	byNetwork map[netip.Prefix]int
	listeners []net.Listener
	stopping  bool
}

func (c *conns) init(maxConns, perNetwork int) {
	c.max, c.perNetwork = maxConns, perNetwork
	c.shedIdle, c.shedInMail = shedIdle, shedInMail
	c.open, c.byNetwork = map[*conn]struct{}{}, map[netip.Prefix]int{}
}

func (c *conns) enter(one *conn) (refusal *smtp.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stopping:
		return replyShuttingDown
	case c.byNetwork[one.from] >= c.perNetwork:
		return replyCrowdedIP
	case len(c.open) >= c.max && !c.makeRoom():
		return replyCrowded
	}
	c.open[one] = struct{}{}
	c.byNetwork[one.from]++
	one.server.running.Add(1)
	return nil
}

// makeRoom sheds the connection that is idle for longest, and reports whether
// there was one.
func (c *conns) makeRoom() bool {
	var idlest [2]*conn // outside and inside a transaction
	since := [2]time.Time{time.Now().Add(-c.shedIdle), time.Now().Add(-c.shedInMail)}
	for one := range c.open {
		kind, idle, ok := one.idleSince()
		if ok && idle.Before(since[kind]) {
			idlest[kind], since[kind] = one, idle
		}
	}
	for _, one := range idlest {
		if one != nil && one.shed() {
			c.remove(one)
			return true
		}
	}
	return false
}

func (c *conns) leave(one *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(one)
}

func (c *conns) remove(one *conn) {
	if _, ok := c.open[one]; !ok {
		return
	}
	delete(c.open, one)
	if c.byNetwork[one.from]--; c.byNetwork[one.from] == 0 {
		delete(c.byNetwork, one.from)
	}
}

// listen registers a listener for stop to close. It returns false after stop.
func (c *conns) listen(l net.Listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.listeners = append(c.listeners, l)
	}
	return !c.stopping
}

// stop refuses new connections and asks clients to disconnect.
func (c *conns) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	if !c.stopping {
		for _, l := range c.listeners {
			errs = append(errs, l.Close())
		}
	}
	c.stopping = true
	for one := range c.open {
		one.stop()
	}
	return errors.Join(errs...)
}

// abort closes all connections at once.
func (c *conns) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.open {
		_ = one.raw.Close() // it may be closed
	}
}

func remoteIP(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
