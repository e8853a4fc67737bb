package store

import (
	"context"

	"github.com/jmoiron/sqlx"
)

// A recipient of a message and a delivery to a webhook are work that one node does
// for a while. Five columns say what is left to do and who does it: status;
// attempts, with the one under way; fence, which rises with each claim;
// next_attempt_at, when the work is due, or never; and leased, while which
// next_attempt_at is the end of the claim. So the work of a node that dies is due
// again by itself.

// workTable is a table with those columns.
type workTable string

const (
	workRecipients workTable = "recipients"
	workDeliveries workTable = "webhook_deliveries"
)

// leaseEnd is the result of an attempt.
type leaseEnd struct {
	seq, fence int64 // as claimed
	status     string
	next       *Time // of the next attempt; nil if that was the last
	untried    bool  // there was no attempt
}

// endLease records the result of an attempt, and reports whether the claim lasted until
// then. own sets more columns; its parameters begin with $6.
func (s *Store) endLease(ctx context.Context, tx *sqlx.Tx, t workTable, e leaseEnd, own string, args ...any) (bool, error) {
	q := `UPDATE ` + string(t) + ` SET leased = false, status = $3, next_attempt_at = $4, attempts = attempts - $5` + own + `
		WHERE seq = $1 AND fence = $2 AND next_attempt_at IS NOT NULL`
	untried := 0
	if e.untried {
		untried = 1
	}
	n, err := affected(s.prepared.Exec(ctx, tx, q, append([]any{e.seq, e.fence, e.status, e.next, untried}, args...)...))
	return n == 1, err
}
