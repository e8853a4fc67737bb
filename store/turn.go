package store

import (
	"context"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// turnPrefix begins the names of the settings that say when the next round of
// some work is due.
const turnPrefix = "next round of "

// turns are the next rounds where one process owns the database.
type turns struct {
	mu   sync.Mutex
	next map[string]time.Time
}

// take is TakeTurn in memory.
func (t *turns) take(work string, now, next time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.next == nil {
		t.next = map[string]time.Time{}
	}
	if now.Before(t.next[work]) {
		return false
	}
	t.next[work] = next
	return true
}

// TakeTurn says whether it is this node's turn to do a round of work that all
// nodes share. One of those that ask within every gets it, the others go without
// until then; so a round is not done by all nodes, and a node that is gone is not
// waited for. A node that may not delete has no turn.
func (s *Store) TakeTurn(ctx context.Context, work string, every time.Duration) (bool, error) {
	const q = `INSERT INTO settings (name, value) VALUES ($1, cast(cast($2 AS bigint) AS text))
		ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE cast(settings.value AS bigint) <= $3`
	if s.Paused() != nil {
		return false, nil
	}
	now := s.now()
	next := now.Add(every)
	if s.engine.Alone() {
		return s.turns.take(work, now, next), nil
	}
	var n int64
	err := s.inTx(ctx, "take a turn", func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, q, turnPrefix+work, NewTime(next), NewTime(now))
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n == 1, err
}
