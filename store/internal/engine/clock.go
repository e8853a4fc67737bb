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

	correction atomic.Int64 // nanoseconds that are added to the node's time
	ahead      atomic.Int64 // nanoseconds by which the server is ahead of the node
}

// Now is the time of the server, to within minCorrection.
func (c *Clock) Now() time.Time { return c.Node().Add(time.Duration(c.correction.Load())) }

// Measured notes that the server's clock showed a time, between two moments of
// the node's.
func (c *Clock) Measured(before, server, after time.Time) {
	if c.Alone {
		return
	}
	took := after.Sub(before)
	ahead := server.Sub(before.Round(0)) - took/2
	c.ahead.Store(int64(surely(ahead, took/2)))
	if diff := ahead - time.Duration(c.correction.Load()); surely(diff, took/2).Abs() > minCorrection {
		c.correction.Store(int64(ahead))
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
