package engine

import (
	"sync/atomic"
	"time"
)

const (
	// MaxSkew is the largest difference between the clocks of a node and of the
	// database server. With a larger one the node neither claims nor deletes.
	MaxSkew = 30 * time.Second
	// minCorrection is the difference that needs no correction: clocks that NTP
	// keeps are closer to each other.
	minCorrection = 50 * time.Millisecond
)

// Clock is the time of the database server, as far as this node knows it. What
// must be exact asks the server itself, with Dialect.Clock.
type Clock struct {
	Node  func() time.Time
	Alone bool // no server has a clock of its own: the node's is right

	last  atomic.Pointer[reading] // nil before the first
	ahead atomic.Int64            // nanoseconds by which the server is ahead of the node
}

// reading is what the server's clock showed at a moment of this process, and the
// largest error of that.
type reading struct {
	server, at time.Time
	most       time.Duration
}

// Now is the time of the server, to within minCorrection and the error of the best
// measurement. Between the measurements it
// follows the monotonic clock of the node, so that a change of the node's time has no
// effect.
func (c *Clock) Now() time.Time {
	if r := c.last.Load(); r != nil {
		return r.server.Add(time.Since(r.at))
	}
	return c.Node()
}

// Measured notes that the server's clock showed a time, between begun and now. node is
// what the node's clock showed at begun.
func (c *Clock) Measured(begun, node, server time.Time) {
	if c.Alone {
		return
	}
	took := time.Since(begun)
	c.ahead.Store(int64(surely(server.Sub(node.Round(0))-took/2, took/2)))
	now := server.Add(took / 2)
	last := c.last.Load()
	// The first measurement is often a bad one: it waits for a connection.
	if last == nil || took/2 < last.most || surely(now.Sub(c.Now()), took/2).Abs() > minCorrection {
		c.last.Store(&reading{now, begun.Add(took), took / 2})
	}
}

// surely is the part of a difference that is more than the error with which it
// was measured.
func surely(diff, most time.Duration) time.Duration {
	switch {
	case diff > most:
		return diff - most
	case diff < -most:
		return diff + most
	}
	return 0
}

// Skewed reports whether the node's clock is too far off.
func (c *Clock) Skewed() bool { return time.Duration(c.ahead.Load()).Abs() > MaxSkew }

// Ahead is how far the server is ahead of the node.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }
