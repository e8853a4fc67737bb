package store

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"
)

// Lease is a claim on a recipient, as Claimed says.
type Lease struct {
	RecipientSeq int64
	Fence        int64
}

// RenewLeases lets claims last for the time of lease from now, and returns those
// that are no more: the recipient was claimed again, or its attempt is recorded.
// A claim whose time is over and that nobody has taken is renewed as well.
func (s *Store) RenewLeases(ctx context.Context, claims []Lease, lease time.Duration) (lost []Lease, err error) {
	if len(claims) == 0 {
		return nil, nil
	}
	// In the order of seq, as attempts are recorded, so that nobody waits in a
	// ring.
	find := `SELECT seq, fence FROM recipients WHERE leased AND ` + s.engine.OneOf("seq", "$1") + ` ORDER BY seq` + s.engine.LockRow()
	push := `UPDATE recipients SET next_attempt_at = ` + s.engine.Clock("$2") + ` + cast($3 AS bigint) WHERE ` + s.engine.OneOf("seq", "$1")
	seqs := make([]int64, len(claims))
	for i, c := range claims {
		seqs[i] = c.RecipientSeq
	}
	err = s.inTx(ctx, "renew leases", func(tx *sqlx.Tx) error {
		lost = nil
		var rows []Recipient
		if err := tx.SelectContext(ctx, &rows, find, s.engine.List(seqs)); err != nil {
			return err
		}
		fences := make(map[int64]int64, len(rows))
		for _, r := range rows {
			fences[r.Seq] = r.Fence
		}
		kept := make([]int64, 0, len(rows))
		for _, c := range claims {
			if fence, leased := fences[c.RecipientSeq]; leased && fence == c.Fence {
				kept = append(kept, c.RecipientSeq)
			} else {
				lost = append(lost, c)
			}
		}
		if len(kept) == 0 {
			return nil
		}
		_, err := tx.ExecContext(ctx, push, s.engine.List(kept), s.sharedNow(), lease.Microseconds())
		return err
	})
	if err != nil {
		return nil, err
	}
	return lost, nil
}

// ReleaseLeases makes recipients due at once that were claimed by a process
// that died, and returns how many: see releaseClaims.
func (s *Store) ReleaseLeases(ctx context.Context) (int64, error) {
	return s.releaseClaims(ctx, "release leases", "recipients")
}

// releaseClaims makes the rows of a table due at once that were claimed by a
// process that died, and returns how many. Only a process that knows itself to be
// the only one can tell, which on SQLite it is: with several nodes on PostgreSQL
// nothing is done, and a lease that nobody renews ends by itself.
func (s *Store) releaseClaims(ctx context.Context, what, table string) (int64, error) {
	if !s.engine.Alone() {
		return 0, nil
	}
	q := `UPDATE ` + table + ` SET next_attempt_at = $1, leased = false, fence = fence + 1
		WHERE next_attempt_at IS NOT NULL AND leased`
	var n int64
	err := s.inTx(ctx, what, func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, q, NewTime(s.now()))
		if err != nil {
			return err
		}
		n, err = res.RowsAffected()
		return err
	})
	return n, err
}
