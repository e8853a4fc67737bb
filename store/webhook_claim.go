package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
)

// maxDueEndpoints bounds how many endpoints are looked at in one round.
const maxDueEndpoints = 1000

// DueEndpoint is an endpoint that has something pending.
type DueEndpoint struct {
	Seq          int64 `db:"seq"`
	FailingSince *Time `db:"failing_since"`
	Due          Time  `db:"due"` // when the first of it is due
}

// DueEndpoints returns the active endpoints, without those in busy, that have
// deliveries pending: first those that do not fail, each kind by when the first
// of its deliveries is due.
func (s *Store) DueEndpoints(ctx context.Context, busy []int64) ([]DueEndpoint, error) {
	// From one endpoint to the next, by index: what they have pending may be much.
	q := `
		WITH RECURSIVE pending (seq) AS (
			SELECT min(endpoint_seq) FROM webhook_deliveries WHERE next_attempt_at IS NOT NULL
			UNION ALL
			SELECT (SELECT min(d.endpoint_seq) FROM webhook_deliveries d
			         WHERE d.next_attempt_at IS NOT NULL AND d.endpoint_seq > pending.seq)
			  FROM pending WHERE pending.seq IS NOT NULL)
		SELECT w.seq, w.failing_since, (SELECT min(d.next_attempt_at) FROM webhook_deliveries d
				WHERE d.endpoint_seq = w.seq AND d.next_attempt_at IS NOT NULL) AS due
		  FROM pending p JOIN webhook_endpoints w ON w.seq = p.seq
		 WHERE w.active AND NOT (` + s.dialect.oneOf("w.seq", "$1") + `)
		 ORDER BY CASE WHEN w.failing_since IS NULL THEN 0 ELSE 1 END, due LIMIT $2`
	var due []DueEndpoint
	err := s.read.SelectContext(ctx, &due, q, s.dialect.list(busy), maxDueEndpoints)
	return due, s.wrap(err, "endpoints with deliveries")
}

// ClaimedDelivery is a delivery that this process alone attempts until the lease
// ends.
type ClaimedDelivery struct {
	Delivery
	// Event is nil when it is deleted.
	Event *Event
}

// ClaimDeliveries takes up to limit deliveries of an endpoint that are due, the
// oldest first, and returns them with the endpoint. Pushing their next attempt
// to the end of the lease is the claim, so that one whose process dies becomes
// due again by itself. ErrNotFound when the endpoint is deleted or off.
func (s *Store) ClaimDeliveries(ctx context.Context, endpointSeq int64, limit int, lease time.Duration) (Webhook, []ClaimedDelivery, error) {
	const endpoint = `SELECT ` + webhookColumns + ` FROM webhook_endpoints WHERE seq = $1 AND active`
	// Materialized, or a plan may run the choice once for each row and take more
	// than limit.
	q := `WITH due AS MATERIALIZED (
			SELECT seq FROM webhook_deliveries WHERE endpoint_seq = $1 AND next_attempt_at <= $2
			 ORDER BY next_attempt_at, seq LIMIT $3` + s.dialect.skipLocked() + `)
		UPDATE webhook_deliveries SET next_attempt_at = $4, leased = true, fence = fence + 1, attempts = attempts + 1
		 WHERE seq IN (SELECT seq FROM due)
		RETURNING ` + deliveryColumns
	var w Webhook
	var claimed []ClaimedDelivery
	err := s.inTx(ctx, "claim deliveries", func(tx *sqlx.Tx) error {
		if err := tx.GetContext(ctx, &w, endpoint, endpointSeq); err != nil {
			return s.wrap(err, "endpoint")
		}
		now := s.now()
		var rows []Delivery
		err := tx.SelectContext(ctx, &rows, q, endpointSeq, NewTime(now), limit, NewTime(now.Add(lease)))
		if err != nil {
			return err
		}
		slices.SortFunc(rows, func(a, b Delivery) int { return cmp.Compare(a.Seq, b.Seq) })
		claimed, err = withEvents(ctx, tx, rows)
		return err
	})
	if err == nil && len(claimed) > 0 {
		crashpoint.Reach(crashpoint.WebhookClaim)
	}
	return w, claimed, err
}

func withEvents(ctx context.Context, tx *sqlx.Tx, rows []Delivery) ([]ClaimedDelivery, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	ids := make([]string, len(rows))
	for i, d := range rows {
		ids[i] = d.EventID
	}
	var events []Event
	if err := selectIn(ctx, tx, &events, `SELECT `+eventColumns+eventTables+` WHERE e.id IN (?)`, ids); err != nil {
		return nil, fmt.Errorf("events of deliveries: %w", err)
	}
	byID := make(map[string]*Event, len(events))
	for i := range events {
		byID[events[i].ID] = &events[i]
	}
	claimed := make([]ClaimedDelivery, len(rows))
	for i, d := range rows {
		claimed[i] = ClaimedDelivery{d, byID[d.EventID]}
	}
	return claimed, nil
}

// StartTest writes a test event for the endpoint, and for it alone, with a
// delivery that is claimed already.
func (s *Store) StartTest(ctx context.Context, w Webhook, lease time.Duration) (ClaimedDelivery, error) {
	const (
		event = `INSERT INTO events (account_id, id, type, test_mode, data, created_at) VALUES ($1, $2, $3, $4, $5, $6)`
		q     = `
		INSERT INTO webhook_deliveries (account_id, endpoint_seq, id, event_id, event_type, status, attempts, fence, leased,
			next_attempt_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, 'pending', 1, 1, true, $6, $7, $7)
		RETURNING ` + deliveryColumns
	)
	now := NewTime(s.now())
	e := Event{AccountID: w.AccountID, ID: NewID("evt_", now.Time), Type: EventWebhookTest, CreatedAt: now}
	var d Delivery
	err := s.inTx(ctx, "test endpoint", func(tx *sqlx.Tx) error {
		data := JSON[WebhookEventData]{WebhookEventData{WebhookID: w.ID}}
		if _, err := s.lockWebhook(ctx, tx, w.AccountID, w.ID); err != nil {
			return err
		}
		text, err := data.Value()
		if err != nil {
			return err
		}
		e.Data, _ = text.(string)
		if _, err := tx.ExecContext(ctx, event, e.AccountID, e.ID, e.Type, e.TestMode, e.Data, now); err != nil {
			return err
		}
		return tx.GetContext(ctx, &d, q, w.AccountID, w.Seq, NewID("dlv_", now.Time), e.ID, e.Type, NewTime(now.Add(lease)), now)
	})
	return ClaimedDelivery{d, &e}, err
}

// ReleaseDeliveries makes deliveries due at once that were claimed by a process
// that died, and returns how many: see releaseClaims.
func (s *Store) ReleaseDeliveries(ctx context.Context) (int64, error) {
	return s.releaseClaims(ctx, "release deliveries", "webhook_deliveries")
}
