package smtp

import (
	"net/netip"
	"sync"
	"time"
)

const (
	// maxGuesses is how many unknown recipients one network may name within
	// guessTime. Whoever names more is looking for addresses.
	maxGuesses = 50
	guessTime  = 10 * time.Minute
	// maxGuessers is how many networks are remembered.
	maxGuessers = 10_000
)

// guesses counts unknown recipients over all connections of a network.
type guesses struct {
	now func() time.Time

	mu sync.Mutex
	by map[netip.Prefix]*guesser
}

type guesser struct {
	since time.Time
	n     int
}

func newGuesses(now func() time.Time) *guesses {
	return &guesses{now: now, by: map[netip.Prefix]*guesser{}}
}

// allow counts one more, and says whether it is answered as others are.
func (g *guesses) allow(from netip.Prefix) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	who := g.by[from]
	if who == nil {
		if len(g.by) >= maxGuessers {
			g.forget(now)
		}
		who = &guesser{since: now}
		g.by[from] = who
	}
	if now.Sub(who.since) >= guessTime {
		*who = guesser{since: now}
	}
	who.n++
	return who.n <= maxGuesses
}

// forget drops those whose time is over, and then anyone until there is room for
// a while, so that a flood of new ones does not make every one of them costly.
func (g *guesses) forget(now time.Time) {
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
