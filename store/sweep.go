package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// sweepBatch is how many rows one transaction of a sweep deletes.
	sweepBatch = 500
	// sweepPages is how many times sweepBatch rows a sweep passes over that are not
	// old.
	sweepPages = 200
)

// sweepPlaces remembers where in each table a sweep goes on.
type sweepPlaces struct {
	mu    sync.Mutex
	after map[string]int64
}

func (p *sweepPlaces) get(table string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.after[table]
}

func (p *sweepPlaces) set(table string, after int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after == nil {
		p.after = map[string]int64{}
	}
	p.after[table] = after
}

// sweepOld deletes some rows of a log that are older than age, and returns how
// many; 0 means that it found none. It reads the table from its beginning and
// has no index by time, so it stops soon where rows are not old. It does not stop
// at the first of them: a node whose clock was ahead may have written many.
func (s *Store) sweepOld(ctx context.Context, table string, age time.Duration) (int, error) {
	old := NewTime(s.now().Add(-age))
	remove := fmt.Sprintf(`DELETE FROM %s WHERE created_at <= $1 AND seq IN (SELECT seq FROM %[1]s WHERE seq > $2 ORDER BY seq LIMIT $3)`, table)
	next := fmt.Sprintf(`SELECT coalesce(max(seq), 0) FROM (SELECT seq FROM %s WHERE seq > $1 ORDER BY seq LIMIT $2) page`, table)
	for range sweepPages {
		after := s.sweeping.get(table)
		n, err := s.sweep(ctx, "sweep "+table, remove, old, after, sweepBatch)
		if err != nil || n > 0 {
			return n, err
		}
		if err := s.read.GetContext(ctx, &after, next, after, sweepBatch); err != nil {
			return 0, s.wrap(err, "sweep "+table)
		}
		s.sweeping.set(table, after)
		if after == 0 {
			return 0, nil // the end
		}
	}
	s.sweeping.set(table, 0)
	return 0, nil
}

// sweep deletes by one statement and returns how many rows went.
func (s *Store) sweep(ctx context.Context, what, query string, args ...any) (int, error) {
	var n int64
	err := s.inTx(ctx, what, func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, query, args...)
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return int(n), err
}

// sweepAll repeats a statement until it changes no more rows. Each time is a
// short transaction of its own.
func (s *Store) sweepAll(ctx context.Context, what, query string, args ...any) error {
	for {
		if n, err := s.sweep(ctx, what, query, args...); n == 0 || err != nil {
			return err
		}
	}
}
