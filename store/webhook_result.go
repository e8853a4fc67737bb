package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
)

// DeliveryResult is what came of an attempt.
type DeliveryResult struct {
	// Seq, EndpointSeq and Fence are as claimed. When the delivery has been
	// claimed again since, the result is not recorded.
	Seq, EndpointSeq, Fence int64
	// Status is what the delivery is now; DeliveryPending means that there will be
	// another attempt, at Next.
	Status DeliveryStatus
	Next   *Time
	// Untried says that there was no attempt after all: the delivery is as it was
	// before, and due.
	Untried bool

	StatusCode *int
	Error      *string
	Body       *string
	DurationMs *int64

	// Judge says that the result counts for or against the endpoint, which is
	// turned off when nothing has succeeded for EndpointPatience.
	Judge bool
	// Gone is why the endpoint is turned off at once; empty: it is not.
	Gone string
}

// EndpointPatience is for how long an endpoint may fail before it is turned off.
const EndpointPatience = 5 * 24 * time.Hour

const failedLong = "every attempt failed for 5 days"

// RecordDelivery stores what came of an attempt. ErrState when another claim has
// taken the delivery since, or it is deleted.
func (s *Store) RecordDelivery(ctx context.Context, r DeliveryResult) error {
	if (r.Status == DeliveryPending) != (r.Next != nil) && !r.Untried {
		return fmt.Errorf("a delivery that is %s and its next attempt do not agree", r.Status)
	}
	return errIn("record delivery", s.results.do(ctx, &r))
}

// commitResults writes results in one transaction.
func (s *Store) commitResults(ctx context.Context, batch []*DeliveryResult) error {
	results := slices.Clone(batch)
	slices.SortFunc(results, func(a, b *DeliveryResult) int { return cmp.Compare(a.Seq, b.Seq) })
	now := NewTime(s.now())
	var off []turnedOff
	err := s.inTx(ctx, "record deliveries", func(tx *sqlx.Tx) error {
		off = nil
		for _, r := range results {
			if err := s.recordResult(ctx, tx, r, now); err != nil {
				return err
			}
		}
		slices.SortStableFunc(results, func(a, b *DeliveryResult) int { return cmp.Compare(a.EndpointSeq, b.EndpointSeq) })
		for _, r := range results {
			turned, err := judge(ctx, tx, r, now)
			if err != nil {
				return errIn("judge endpoint", err)
			}
			off = append(off, turned...)
		}
		crashpoint.Reach(crashpoint.WebhookMark)
		return nil
	})
	if err != nil {
		return err
	}
	for _, w := range off {
		s.log.WarnContext(ctx, "webhook endpoint turned off", "webhook_id", w.ID, "reason", w.Reason)
	}
	return nil
}

// turnedOff is an endpoint that the service has turned off, and why.
type turnedOff struct {
	ID     string `db:"id"`
	Reason string `db:"disabled_reason"`
}

func (s *Store) recordResult(ctx context.Context, tx *sqlx.Tx, r *DeliveryResult, now Time) error {
	const (
		save = `
		UPDATE webhook_deliveries
		   SET leased = false, status = $3, next_attempt_at = $4, last_status_code = $5, last_error = $6, last_body = $7,
		       last_duration_ms = $8, updated_at = $9
		 WHERE seq = $1 AND fence = $2 AND status = 'pending'`
		giveBack = `
		UPDATE webhook_deliveries SET leased = false, attempts = attempts - 1, next_attempt_at = $3
		 WHERE seq = $1 AND fence = $2 AND status = 'pending'`
	)
	var res sql.Result
	var err error
	if r.Untried {
		res, err = tx.ExecContext(ctx, giveBack, r.Seq, r.Fence, now)
	} else {
		res, err = tx.ExecContext(ctx, save, r.Seq, r.Fence, r.Status, r.Next, r.StatusCode, r.Error, r.Body, r.DurationMs, now)
	}
	if err != nil {
		return err
	}
	return one(res, fmt.Sprintf("delivery %d at fence %d", r.Seq, r.Fence), ErrState)
}

// judge notes on the endpoint how it did, and returns it when that turned it off.
func judge(ctx context.Context, tx *sqlx.Tx, r *DeliveryResult, now Time) (off []turnedOff, err error) {
	const (
		well   = `UPDATE webhook_endpoints SET failing_since = NULL WHERE seq = $1 AND failing_since IS NOT NULL`
		badly  = `UPDATE webhook_endpoints SET failing_since = $2 WHERE seq = $1 AND failing_since IS NULL`
		giveUp = `
		UPDATE webhook_endpoints SET active = false, disabled_reason = $3
		 WHERE seq = $1 AND active AND failing_since <= $2
		RETURNING id, disabled_reason`
		gone = `
		UPDATE webhook_endpoints SET active = false, disabled_reason = $2 WHERE seq = $1 AND active
		RETURNING id, disabled_reason`
	)
	switch {
	case r.Untried || !r.Judge:
		return nil, nil
	case r.Gone != "":
		err = tx.SelectContext(ctx, &off, gone, r.EndpointSeq, r.Gone)
		return off, err
	case r.Status == DeliverySucceeded:
		_, err = tx.ExecContext(ctx, well, r.EndpointSeq)
		return nil, err
	}
	if _, err = tx.ExecContext(ctx, badly, r.EndpointSeq, now); err != nil {
		return nil, err
	}
	err = tx.SelectContext(ctx, &off, giveUp, r.EndpointSeq, NewTime(now.Add(-EndpointPatience)), failedLong)
	return off, err
}
