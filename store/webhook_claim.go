package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
)

// maxDueEndpoints is the most endpoints that one round returns.
const maxDueEndpoints = 1000

// DueEndpoint is an endpoint with pending deliveries.
type DueEndpoint struct {
	Seq          int64 `db:"seq"`
	FailingSince *Time `db:"failing_since"`
	Due          Time  `db:"due"` // when its first delivery is due
}

// DueEndpoints returns the active endpoints that have pending deliveries, except
// those in busy. Endpoints that do not fail come first; each group is ordered by
// when its first delivery is due.
func (s *Store) DueEndpoints(ctx context.Context, busy []int64) ([]DueEndpoint, error) {
	if s.Paused() != nil {
		return nil, nil
	}
	now := s.now()
	q, args, all := s.dueEndpoints(now)
	var due []DueEndpoint
	if err := s.read.SelectContext(ctx, &due, q, args...); err != nil {
		return nil, s.wrap(err, "endpoints with deliveries")
	}
	s.endpoints.found(now, due, all)
	due = slices.DeleteFunc(due, func(e DueEndpoint) bool { return slices.Contains(busy, e.Seq) })
	return due[:min(len(due), maxDueEndpoints)], nil
}

const orderEndpoints = ` ORDER BY CASE WHEN failing_since IS NULL THEN 0 ELSE 1 END, due`

// dueEndpoints returns the query for the endpoints with pending deliveries. all
// reports that it searches all deliveries.
func (s *Store) dueEndpoints(now time.Time) (q string, args []any, all bool) {
	// The whole search steps from one endpoint to the next by index, because an
	// endpoint may have many pending deliveries.
	const whole = `
		WITH RECURSIVE pending (seq) AS (
			SELECT min(endpoint_seq) FROM webhook_deliveries WHERE next_attempt_at IS NOT NULL
			UNION ALL
			SELECT (SELECT min(d.endpoint_seq) FROM webhook_deliveries d
			         WHERE d.next_attempt_at IS NOT NULL AND d.endpoint_seq > pending.seq)
			  FROM pending WHERE pending.seq IS NOT NULL)
		SELECT w.seq, w.failing_since, (SELECT min(d.next_attempt_at) FROM webhook_deliveries d
				WHERE d.endpoint_seq = w.seq AND d.next_attempt_at IS NOT NULL) AS due
		  FROM pending p JOIN webhook_endpoints w ON w.seq = p.seq
		 WHERE w.active` + orderEndpoints
	const recent = `
		SELECT seq, failing_since, due FROM (
			SELECT w.seq, w.failing_since, (SELECT min(d.next_attempt_at) FROM webhook_deliveries d
					WHERE d.endpoint_seq = w.seq AND d.next_attempt_at >= coalesce(o.due, cast($1 AS bigint))) AS due
			  FROM webhook_endpoints w LEFT JOIN (VALUES {older}) AS o (endpoint, due) ON o.endpoint = w.seq
			 WHERE w.active) found
		 WHERE due IS NOT NULL` + orderEndpoints
	from, older, all := s.endpoints.at(now)
	if all || s.engine.Alone() {
		return whole, nil, true
	}
	values := []string{"(0, 0)"} // no endpoint has the number 0
	for seq, due := range older {
		values = append(values, fmt.Sprintf("(%d, %d)", seq, due.UnixMicro()))
	}
	return strings.Replace(recent, "{older}", strings.Join(values, ", "), 1), []any{from}, false
}

// ClaimedDelivery is a delivery that this process alone attempts until the lease
// ends.
type ClaimedDelivery struct {
	Delivery
	// Event is nil when it is deleted.
	Event *Event
}

// claimWindow is how many due deliveries of an endpoint a claim looks at, for
// each that it may take.
const claimWindow = 8

// ClaimDeliveries takes up to limit deliveries of an endpoint that are due, the
// oldest first, and returns them with the endpoint. Pushing their next attempt
// to the end of the lease is the claim, so that one whose process dies becomes
// due again by itself. ErrNotFound when the endpoint is deleted or off.
//
// The deliveries about one email or message are a queue: only the first that is
// pending can be claimed. Those behind it are put off until its next attempt, and
// its success or final failure makes the next of them due (see recordResults).
func (s *Store) ClaimDeliveries(ctx context.Context, endpointSeq int64, limit int, lease time.Duration) (Webhook, []ClaimedDelivery, error) {
	const endpoint = `SELECT ` + webhookColumns + ` FROM webhook_endpoints WHERE seq = $1 AND active`
	var w Webhook
	var claimed []ClaimedDelivery
	err := s.inTx(ctx, "claim deliveries", func(tx *sqlx.Tx) error {
		if err := tx.GetContext(ctx, &w, endpoint, endpointSeq); err != nil {
			return s.wrap(err, "endpoint")
		}
		now, err := s.serverClock(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := s.claimFirst(ctx, tx, endpointSeq, limit, NewTime(now), NewTime(now.Add(lease)))
		if err != nil {
			return err
		}
		claimed, err = withEvents(ctx, tx, rows)
		return err
	})
	if err == nil && len(claimed) > 0 {
		crashpoint.Reach(crashpoint.WebhookClaim)
	}
	return w, claimed, err
}

// dueDelivery is a delivery that is due, with the first pending one of its queue.
type dueDelivery struct {
	Seq  int64  `db:"seq"`
	Head *int64 `db:"head"` // nil: it is in no queue
}

// claimFirst claims due deliveries that are the first of their queues, and puts
// off the others.
func (s *Store) claimFirst(ctx context.Context, tx *sqlx.Tx, endpointSeq int64, limit int, now, until Time) ([]Delivery, error) {
	due := `
		SELECT d.seq, (SELECT min(h.seq) FROM webhook_deliveries h
				WHERE h.endpoint_seq = $1 AND h.message_seq = d.message_seq AND h.next_attempt_at IS NOT NULL) AS head
		  FROM webhook_deliveries d WHERE d.endpoint_seq = $1 AND d.next_attempt_at <= $2
		 ORDER BY d.next_attempt_at, d.seq LIMIT $3` + s.engine.SkipLocked()
	const (
		claim = `
		UPDATE webhook_deliveries SET next_attempt_at = ?, leased = true, fence = fence + 1, attempts = attempts + 1
		 WHERE seq IN (?)
		RETURNING ` + deliveryColumns
		putOff = `
		UPDATE webhook_deliveries SET next_attempt_at = (SELECT h.next_attempt_at FROM webhook_deliveries h
				WHERE h.endpoint_seq = webhook_deliveries.endpoint_seq AND h.message_seq = webhook_deliveries.message_seq
				  AND h.next_attempt_at IS NOT NULL ORDER BY h.seq LIMIT 1)
		 WHERE seq IN (?)`
	)
	var found []dueDelivery
	if err := tx.SelectContext(ctx, &found, due, endpointSeq, now, claimWindow*limit); err != nil {
		return nil, errIn("due deliveries", err)
	}
	var first, behind []int64
	heads := map[int64]bool{} // of the queues that this claim can move on
	for _, d := range found {
		if d.Head == nil || *d.Head == d.Seq {
			first = append(first, d.Seq)
			heads[d.Seq] = true
		}
	}
	for _, d := range found {
		if d.Head != nil && !heads[*d.Head] {
			behind = append(behind, d.Seq)
		}
	}
	if len(behind) > 0 {
		if err := execIn(ctx, tx, putOff, behind); err != nil {
			return nil, errIn("put deliveries off", err)
		}
	}
	if len(first) == 0 {
		return nil, nil
	}
	var rows []Delivery
	if err := selectIn(ctx, tx, &rows, claim, until, first[:min(len(first), limit)]); err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b Delivery) int { return cmp.Compare(a.Seq, b.Seq) })
	return rows, nil
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
