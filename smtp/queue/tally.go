package queue

import "sync/atomic"

// Tally is what a queue has met since it was made.
type Tally struct {
	// InDoubt is how often a server was given a mail and did not answer: it may
	// have taken it, and gets it again (RFC 1047).
	InDoubt int64
	// UnmetEnforced is how often a server was not used because it does not meet
	// its domain's MTA-STS policy, and UnmetTesting how often one was used although
	// it does not, as its domain asks for while it is testing.
	UnmetEnforced, UnmetTesting int64
}

type queueTally struct{ inDoubt, unmetEnforced, unmetTesting atomic.Int64 }

// Tally returns what the queue has met so far.
func (q *Queue) Tally() Tally {
	return Tally{
		InDoubt: q.tally.inDoubt.Load(), UnmetEnforced: q.tally.unmetEnforced.Load(), UnmetTesting: q.tally.unmetTesting.Load(),
	}
}
