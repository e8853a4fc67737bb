package inbound

import (
	"net/netip"
	"sync"
	"time"
)

// unknownRcpts counts unknown recipients per network, over all connections.
type unknownRcpts struct {
	now func() time.Time

	mu sync.Mutex
	by map[netip.Prefix]*guessCount
}

type guessCount struct {
	since time.Time
	n     int
}

func newUnknownRcpts(now func() time.Time) *unknownRcpts {
	return &unknownRcpts{now: now, by: map[netip.Prefix]*guessCount{}}
}

// allow counts one more unknown recipient, and reports whether the network is
// within its limit.
func (g *unknownRcpts) allow(from netip.Prefix) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	who := g.by[from]
	if who == nil {
		if len(g.by) >= maxGuessers {
			g.forget(now)
		}
		who = &guessCount{since: now}
		g.by[from] = who
	}
	if now.Sub(who.since) >= guessTime {
		*who = guessCount{since: now}
	}
	who.n++
	return who.n <= maxGuesses
}

// forget removes expired entries. If there are too many, it removes arbitrary
// ones until there is room for many more, so that a flood does not make every
// call expensive.
func (g *unknownRcpts) forget(now time.Time) {
	for from, who := range g.by {
		if now.Sub(who.since) >= guessTime {
			delete(g.by, from)
		}
	}
	for from := range g.by {
		if len(g.by) < maxGuessers*9/10 {
			break
		}
		delete(g.by, from)
	}
}
