package store

import (
	"context"
	"maps"
	"sync"
	"time"
)

// Tally is what this process has committed since it began, test mode left out.
type Tally struct {
	Received int64 // messages
	Accepted int64 // recipients
	// Attempts are by what the recipient was after each.
	Attempts map[RecipientStatus]int64
}

type tally struct {
	mu    sync.Mutex
	kinds map[countKind]int64
	tries map[RecipientStatus]int64
}

// add notes what a batch has committed.
func (t *tally) add(b *hotBatch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds == nil {
		t.kinds, t.tries = map[countKind]int64{}, map[RecipientStatus]int64{}
	}
	for k, n := range b.counts {
		if k.inbox == wholeAccount {
			t.kinds[k.kind] += n
		}
	}
	for status, n := range b.tries {
		t.tries[status] += n
	}
}

// Tally returns what this process has committed so far.
func (s *Store) Tally() Tally {
	s.tally.mu.Lock()
	defer s.tally.mu.Unlock()
	return Tally{
		Received: s.tally.kinds[countReceived], Accepted: s.tally.kinds[countAccepted], Attempts: maps.Clone(s.tally.tries),
	}
}

// QueueLag says how many recipients are due, and for how long the first of them
// has been.
func (s *Store) QueueLag(ctx context.Context) (due int64, age time.Duration, err error) {
	const q = `SELECT count(*) AS due, coalesce(min(next_attempt_at), 0) AS first FROM recipients
		WHERE next_attempt_at IS NOT NULL AND next_attempt_at <= $1`
	now := NewTime(s.now())
	var row struct {
		Due   int64 `db:"due"`
		First Time  `db:"first"`
	}
	if err := s.read.GetContext(ctx, &row, q, now); err != nil {
		return 0, 0, s.wrap(err, "queue")
	}
	if row.Due > 0 {
		age = now.Sub(row.First.Time)
	}
	return row.Due, age, nil
}
