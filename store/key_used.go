package store

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// usedEvery is how often it is written when keys were used. A crash loses what
// was noted since.
const usedEvery = 15 * time.Second

// usedKeys is when keys were last used, as far as it is not written yet.
type usedKeys struct {
	mu sync.Mutex
	at map[int64]Time // by sequence number of the key
}

// KeyUsed notes that the key was used just now. It is written soon, together
// with that of other keys.
func (s *Store) KeyUsed(k Key) {
	now := NewTime(s.now())
	s.used.mu.Lock()
	defer s.used.mu.Unlock()
	if s.used.at == nil {
		s.used.at = map[int64]Time{}
	}
	s.used.at[k.Seq] = now
}

// take returns what is to be written, and forgets it.
func (u *usedKeys) take() map[int64]Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.at
	u.at = nil
	return at
}

// noteUsedKeys writes when keys were used until ctx ends, and then once more.
func (s *Store) noteUsedKeys(ctx context.Context) {
	t := time.NewTicker(usedEvery)
	defer t.Stop()
	for running := true; running; {
		select {
		case <-ctx.Done():
			running = false
		case <-t.C:
		}
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), usedEvery/5)
		if err := s.FlushUsedKeys(last); err != nil {
			s.log.WarnContext(ctx, "when keys were used is not written", "error", err)
		}
		cancel()
	}
}

// FlushUsedKeys writes when keys were used. What cannot be written is lost.
func (s *Store) FlushUsedKeys(ctx context.Context) error {
	const q = `UPDATE api_keys SET last_used_at = $2 WHERE seq = $1 AND (last_used_at IS NULL OR last_used_at < $2)`
	at := s.used.take()
	if len(at) == 0 {
		return nil
	}
	return s.inTx(ctx, "note used keys", func(tx *sqlx.Tx) error {
		for _, seq := range slices.Sorted(maps.Keys(at)) { // nodes hold the rows in one order
			if _, err := tx.ExecContext(ctx, q, seq, at[seq]); err != nil {
				return err
			}
		}
		return nil
	})
}
