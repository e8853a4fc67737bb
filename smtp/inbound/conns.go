package inbound

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/postroom/postroom/smtp"
)

// conns are the connections of a server, counted in all and for each network
// that they come from.
//
// When all places are taken, a client that does nothing makes room for the next:
// first the one that has been idle for longest outside of a transaction, then
// the slowest one inside. A client is as idle as it is behind what it should have
// done (see wire.earned): a byte of data now and then, or commands that lead to
// nothing, are no work. So those who want to fill the server have to work for
// every place as those do who have mail.
type conns struct {
	max, perNetwork                 int
	shedIdle, shedInMail, enterWait time.Duration // the constants, but in tests

	mu        sync.Mutex
	open      map[*wire]struct{} // those that were shed too, until they are gone
	leaving   int                // those that were shed
	byNetwork map[netip.Prefix]int
	doors     []net.Listener
	stopping  bool

	left chan struct{} // gets one when somebody has left
}

func (c *conns) init(maxConns, perNetwork int) {
	c.max, c.perNetwork = maxConns, perNetwork
	c.shedIdle, c.shedInMail, c.enterWait = shedIdle, shedInMail, enterWait
	c.open, c.byNetwork = map[*wire]struct{}{}, map[netip.Prefix]int{}
	c.left = make(chan struct{}, 1)
}

// network is what an address counts as: an IPv4 address as itself, an IPv6 one
// as its /64, because whoever has one of those has them all.
func network(ip netip.Addr) netip.Prefix {
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{} // no IP address at all: all such are one
	}
	return p
}

// enter adds w, or says why not.
func (c *conns) enter(w *wire) (refusal *smtp.Reply) {
	refusal, crush := c.tryEnter(w)
	if !crush {
		return refusal
	}
	late := time.NewTimer(c.enterWait)
	defer late.Stop()
	for crush {
		select {
		case <-c.left:
			refusal, crush = c.tryEnter(w)
		case <-late.C:
			return refusal
		}
	}
	return refusal
}

// tryEnter is enter without a wait. With crush, it was refused for those who are
// on their way out, which they soon are.
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

// makeRoom sheds the idlest connection, and reports whether there was one.
func (c *conns) makeRoom(now time.Time) bool {
	var idlest [2]*wire // outside and inside of a transaction
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

// leave forgets w.
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
	default: // one is there already
	}
}

// listen notes a listener that stop is to close; false when it is too late.
func (c *conns) listen(l net.Listener) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.doors = append(c.doors, l)
	}
	return !c.stopping
}

// stop lets no more in and asks those inside to go.
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

// abort breaks all connections off.
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
