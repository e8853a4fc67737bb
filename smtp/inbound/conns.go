package inbound

import (
	"net/netip"
	"sync"
	"time"

	"github.com/postroom/postroom/smtp"
)

// conns counts the open connections of a server, in total and by network.
//
// When the limit is reached, the client that has been idle for longest makes room for a
// new one. Idleness is measured from the useful work of a client (conn.useful): occasional
// bytes or pointless commands do not count. A client in a transaction has some more time.
type conns struct {
	max, perNetwork    int
	minIdle, mailGrace time.Duration // the constants, except in tests

	mu        sync.Mutex
	open      map[*conn]struct{} // without those that are closed to make room
	byNetwork map[netip.Prefix]int
	stopping  bool
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
	return nil
}

// makeRoom drops the connection that is idle for longest, and reports whether
// there was one.
func (c *conns) makeRoom() bool {
	var idlest *conn
	since := time.Now().Add(-c.minIdle)
	for one := range c.open {
		if idle, ok := one.idleSince(); ok && idle.Before(since) {
			idlest, since = one, idle
		}
	}
	if idlest == nil {
		return false
	}
	idlest.drop()
	c.remove(idlest)
	return true
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

// stop refuses new connections and asks clients to disconnect.
func (c *conns) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	for one := range c.open {
		one.stop()
	}
}

// abort closes all connections at once.
func (c *conns) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.open {
		_ = one.raw.Close() // it may be closed
	}
}

// unknownRcpts counts unknown recipients per network, over all connections, in periods of
// guessTime. A period ends early when there are too many networks.
type unknownRcpts struct {
	now func() time.Time

	mu    sync.Mutex
	began time.Time
	by    map[netip.Prefix]int
}

// allow counts one more unknown recipient, and reports whether the network is
// within its limit.
func (g *unknownRcpts) allow(from netip.Prefix) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := g.now(); g.by == nil || now.Sub(g.began) >= guessTime || len(g.by) >= maxGuessers {
		g.began, g.by = now, map[netip.Prefix]int{}
	}
	g.by[from]++
	return g.by[from] <= maxGuesses
}
