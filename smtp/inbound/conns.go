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
// When the limit is reached, an idle client makes room for a new one: first the
// client that has been idle for longest outside a transaction, then the slowest
// one inside. Idleness is measured from the useful work of a client (see
// wire.earned): occasional bytes or pointless commands do not count. So an
// attacker must do real work for every connection.
type conns struct {
	max, perNetwork                 int
	shedIdle, shedInMail, enterWait time.Duration // the constants, except in tests

	mu        sync.Mutex
	open      map[*wire]struct{} // including shed connections until they are closed
	leaving   int                // shed connections
	byNetwork map[netip.Prefix]int
	doors     []net.Listener
	stopping  bool

	left chan struct{} // receives a value when a connection has closed
}

func (c *conns) init(maxConns, perNetwork int) {
	c.max, c.perNetwork = maxConns, perNetwork
	c.shedIdle, c.shedInMail, c.enterWait = shedIdle, shedInMail, enterWait
	c.open, c.byNetwork = map[*wire]struct{}{}, map[netip.Prefix]int{}
	c.left = make(chan struct{}, 1)
}

// network returns the unit by which addresses are counted: a single IPv4 address,
// or the /64 of an IPv6 address, because one client usually controls all of it.
func network(ip netip.Addr) netip.Prefix {
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // all clients without an IP address count as one
	}
	return p
}

func (c *conns) enter(w *wire) (refusal *smtp.Reply) {
	var late <-chan time.Time
	for {
		refusal, crush := c.tryEnter(w)
		if !crush {
			return refusal
		}
		if late == nil {
			late = time.After(c.enterWait)
		}
		select {
		case <-c.left:
		case <-late:
			return refusal
		}
	}
}

// tryEnter is like enter without waiting. crush means that w was refused only
// because too many shed connections are still closing.
func (c *conns) tryEnter(w *wire) (refusal *smtp.Reply, crush bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch full := len(c.open)-c.leaving >= c.max; {
	case c.stopping:
		return replyShuttingDown, false
	case c.byNetwork[w.from] >= c.perNetwork:
		return replyCrowdedIP, false
	case full && c.leaving >= maxLeaving:
		return replyCrowded, true
	case full && !c.makeRoom(time.Now()):
		return replyCrowded, false
	}
	c.open[w] = struct{}{}
	c.byNetwork[w.from]++
	w.server.running.Add(1)
	return nil, false
}

// makeRoom sheds the connection that is idle for longest, and reports whether
// there was one.
func (c *conns) makeRoom(now time.Time) bool {
	var idlest [2]*wire // outside and inside a transaction
	since := [2]int64{now.Add(-c.shedIdle).UnixNano(), now.Add(-c.shedInMail).UnixNano()}
	for w := range c.open {
		kind := 0
		if w.inMail.Load() {
			kind = 1
		}
		if t := w.idleSince.Load(); t != 0 && t < since[kind] {
			idlest[kind], since[kind] = w, t
		}
	}
	for _, w := range idlest {
		if w != nil && w.shed() {
			c.leaving++
			return true
		}
	}
	return false
}

func (c *conns) leave(w *wire) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, w)
	if c.byNetwork[w.from]--; c.byNetwork[w.from] == 0 {
		delete(c.byNetwork, w.from)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shedded {
		c.leaving--
	}
	w.shedded = false
	select {
	case c.left <- struct{}{}:
	default: // a value is already pending
	}
}

// listen registers a listener for stop to close. It returns false after stop.
func (c *conns) listen(l net.Listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.doors = append(c.doors, l)
	}
	return !c.stopping
}

// stop refuses new connections and asks clients to disconnect.
func (c *conns) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	if !c.stopping {
		for _, l := range c.doors {
			errs = append(errs, l.Close())
		}
	}
	c.stopping = true
	for w := range c.open {
		w.stop()
	}
	return errors.Join(errs...)
}

// abort closes all connections at once.
func (c *conns) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.open {
		w.abort()
	}
}

func remoteIP(c net.Conn) netip.Addr {
	if a, ok := c.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}
