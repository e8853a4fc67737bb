package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/store/internal/batch"
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
	return errIn("record delivery", s.results.Do(ctx, &r))
}

// commitResults writes results in one transaction.
func (s *Store) commitResults(ctx context.Context, all []*DeliveryResult, _ bool) ([]error, error) {
	results := slices.Clone(all)
	slices.SortFunc(results, func(a, b *DeliveryResult) int { return cmp.Compare(a.Seq, b.Seq) })
	now := NewTime(s.now())
	var off []turnedOff
	err := s.inTx(ctx, "record deliveries", func(tx *sqlx.Tx) error {
		off = nil
		if err := s.recordResults(ctx, tx, results, now); err != nil {
			return err
		}
		for _, r := range verdicts(results) {
			turned, err := judge(ctx, tx, r, now)
			if err != nil {
				return errIn("judge endpoint", err)
			}
			off = append(off, turned...)
		}
		crashpoint.Reach(crashpoint.WebhookMark)
		return nil
	})
	if bad, ok := errors.AsType[*resultError](err); ok {
		return nil, batch.OfItem(slices.Index(all, bad.result), err)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range off {
		s.log.WarnContext(ctx, "webhook endpoint turned off", "webhook_id", w.ID, "reason", w.Reason)
	}
	return nil, nil
}

// resultError is an error that one of the results causes.
type resultError struct {
	result *DeliveryResult
	err    error
}

func (e *resultError) Error() string { return e.err.Error() }
func (e *resultError) Unwrap() error { return e.err }

// lostClaim is the error of a result whose claim has ended.
func lostClaim(r *DeliveryResult) error {
	return &resultError{r, fmt.Errorf("delivery %d at fence %d: %w", r.Seq, r.Fence, ErrState)}
}

// turnedOff is an endpoint that the service has turned off, and why.
type turnedOff struct {
	ID     string `db:"id"`
	Reason string `db:"disabled_reason"`
}

const (
	updateDeliveries = `
	WITH r (seq, fence, status, next_at, code, fault, body, duration, at) AS (VALUES {rows})
	UPDATE webhook_deliveries
	   SET leased = false, status = r.status, next_attempt_at = r.next_at, last_status_code = r.code, last_error = r.fault,
	       last_body = r.body, last_duration_ms = r.duration, updated_at = r.at
	  FROM r
	 WHERE webhook_deliveries.seq = r.seq AND webhook_deliveries.fence = r.fence AND webhook_deliveries.status = 'pending'
	RETURNING webhook_deliveries.seq`
	giveBackDelivery = `
	UPDATE webhook_deliveries SET leased = false, attempts = attempts - 1, next_attempt_at = $3
	 WHERE seq = $1 AND fence = $2 AND status = 'pending'`
	// What was put off behind a delivery that has ended is due now. What was not is
	// written too: then a claim that is putting it off at this moment comes first.
	moveQueuesOn = `
	UPDATE webhook_deliveries SET next_attempt_at = CASE WHEN next_attempt_at > ? THEN ? ELSE next_attempt_at END
	 WHERE NOT leased AND next_attempt_at IS NOT NULL AND seq IN (
		SELECT (SELECT min(f.seq) FROM webhook_deliveries f
		         WHERE f.endpoint_seq = d.endpoint_seq AND f.message_seq = d.message_seq AND f.next_attempt_at IS NOT NULL AND f.seq > d.seq)
		  FROM webhook_deliveries d WHERE d.seq IN (?))`
)

// recordResults writes results. ErrState when one of them is of a claim that has
// ended; then nothing of the batch may stay.
func (s *Store) recordResults(ctx context.Context, tx *sqlx.Tx, results []*DeliveryResult, now Time) error {
	var args []any
	left := make(map[int64]struct{}, len(results)) // deliveries that are to be written
	for _, r := range results {
		if r.Untried {
			res, err := tx.ExecContext(ctx, giveBackDelivery, r.Seq, r.Fence, now)
			if err == nil && one(res, "", ErrState) != nil {
				err = lostClaim(r)
			}
			if err != nil {
				return err
			}
			continue
		}
		if _, twice := left[r.Seq]; twice {
			return lostClaim(r)
		}
		left[r.Seq] = struct{}{}
		args = append(args, r.Seq, r.Fence, string(r.Status), r.Next, r.StatusCode, r.Error, r.Body, r.DurationMs, now)
	}
	err := s.hot.updateDeliveries.Each(ctx, tx, args, func(rows *sql.Rows) error {
		var seq int64
		err := rows.Scan(&seq)
		delete(left, seq)
		return err
	})
	if err != nil {
		return errIn("update deliveries", err)
	}
	for _, r := range results {
		if _, is := left[r.Seq]; is {
			return lostClaim(r)
		}
	}
	var ended []int64
	for _, r := range results {
		if !r.Untried && r.Status != DeliveryPending {
			ended = append(ended, r.Seq)
		}
	}
	if len(ended) == 0 {
		return nil
	}
	return errIn("move queues on", execIn(ctx, tx, moveQueuesOn, now, now, ended))
}

// verdicts are the results that say something about their endpoints, by endpoint
// and without those that say what the one before has said.
func verdicts(results []*DeliveryResult) []*DeliveryResult {
	said := slices.DeleteFunc(slices.Clone(results), func(r *DeliveryResult) bool { return r.Untried || !r.Judge })
	slices.SortStableFunc(said, func(a, b *DeliveryResult) int { return cmp.Compare(a.EndpointSeq, b.EndpointSeq) })
	return slices.CompactFunc(said, func(a, b *DeliveryResult) bool {
		return a.EndpointSeq == b.EndpointSeq && a.Gone == b.Gone && (a.Status == DeliverySucceeded) == (b.Status == DeliverySucceeded)
	})
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
