package queue

import "sync/atomic"

// Tally holds the counters of a queue since its creation.
type Tally struct {
	// InDoubt counts messages that a server received without replying. It may
	// have accepted them, and they are sent again (RFC 1047).
	InDoubt int64
	// UnmetEnforced counts servers that were skipped because they do not meet
	// their domain's MTA-STS policy. UnmetTesting counts servers that were used
	// nevertheless, because the policy is in testing mode.
	UnmetEnforced, UnmetTesting int64
}

type queueTally struct{ inDoubt, unmetEnforced, unmetTesting atomic.Int64 }

// Tally returns the current counters.
func (q *Queue) Tally() Tally {
	return Tally{
		InDoubt: q.tally.inDoubt.Load(), UnmetEnforced: q.tally.unmetEnforced.Load(), UnmetTesting: q.tally.unmetTesting.Load(),
	}
}
