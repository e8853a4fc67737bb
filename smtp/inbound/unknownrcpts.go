package inbound

import (
	"net/netip"
	"sync"
	"time"
)

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
