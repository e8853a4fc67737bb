package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/batch"
)

// DeliveryLife is how long deliveries are kept.
const DeliveryLife = 30 * 24 * time.Hour

// DeliveryStatus is what became of a delivery.
type DeliveryStatus string

// The states of a delivery. A retry leads back from the last two to the first.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliverySucceeded DeliveryStatus = "succeeded"
	DeliveryFailed    DeliveryStatus = "failed"
)

// Delivery is one event for one webhook endpoint.
type Delivery struct {
	Seq         int64          `db:"seq"`
	AccountID   int64          `db:"account_id"`
	EndpointSeq int64          `db:"endpoint_seq"`
	ID          string         `db:"id"`
	EventID     string         `db:"event_id"`
	EventType   EventType      `db:"event_type"`
	Status      DeliveryStatus `db:"status"`
	Attempts    int            `db:"attempts"` // with the one that is under way
	Fence       int64          `db:"fence"`    // rises with each claim
	Leased      bool           `db:"leased"`   // an attempt is under way
	// LastStatusCode, LastError, LastBody and LastDurationMs are of the last
	// attempt; nil means that it has none, or that there was no attempt.
	LastStatusCode *int    `db:"last_status_code"`
	LastError      *string `db:"last_error"`
	LastBody       *string `db:"last_body"`
	LastDurationMs *int64  `db:"last_duration_ms"`
	NextAttemptAt  *Time   `db:"next_attempt_at"` // while it is pending
	CreatedAt      Time    `db:"created_at"`
	UpdatedAt      Time    `db:"updated_at"`
}

const deliveryColumns = `seq, account_id, endpoint_seq, id, event_id, event_type, status, attempts, fence, leased, last_status_code,
	last_error, last_body, last_duration_ms, next_attempt_at, created_at, updated_at`

// DeliveryFilter says which deliveries of an endpoint a list is about. Empty
// fields match all.
type DeliveryFilter struct {
	Status    DeliveryStatus
	EventType EventType
}

// ListDeliveries returns a page of the endpoint's deliveries, newest first. It
// looks at so many of them that a page may hold fewer than the limit, or none,
// and yet not be the last.
func (s *Store) ListDeliveries(ctx context.Context, w Webhook, f DeliveryFilter, p Page) (List[Delivery], error) {
	scope := fmt.Sprintf("deliveries/%d/%d/%q/%q", w.AccountID, w.Seq, f.Status, f.EventType)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Delivery]{}, err
	}
	inner, most := &where{}, p.Limit+1
	inner.add("endpoint_seq = ?", w.Seq)
	inner.add("seq < ?", before)
	outer := &where{args: inner.args}
	if f.add(outer) {
		most = max(most, s.bounds.listScan)
	}
	const from = ` FROM webhook_deliveries`
	q := `SELECT ` + deliveryColumns + ` FROM (SELECT ` + deliveryColumns + from + inner.sql() + ` ORDER BY seq DESC LIMIT ` + strconv.Itoa(most) + `) d` +
		outer.sql() + ` ORDER BY seq DESC LIMIT ` + outer.arg(p.Limit+1)
	var rows []Delivery
	if err := s.reads.All(ctx, &rows, q, outer.args...); err != nil {
		return List[Delivery]{}, s.wrap(err, "list deliveries")
	}
	l := page(s, scope, p.Limit, rows, func(d Delivery) position { return position{seq: d.Seq} })
	if l.Cursor != "" {
		return l, nil
	}
	var last []int64
	q = `SELECT seq` + from + inner.sql() + ` ORDER BY seq DESC LIMIT 1 OFFSET ` + strconv.Itoa(most-1)
	if err := s.reads.All(ctx, &last, q, inner.args...); err != nil {
		return List[Delivery]{}, s.wrap(err, "list deliveries")
	}
	if len(last) == 1 {
		l.Cursor = s.cursors.make(scope, position{seq: last[0]})
	}
	return l, nil
}

// add adds the conditions of the filter, and says whether there are any.
func (f DeliveryFilter) add(w *where) bool {
	if f.Status != "" {
		w.add("status = ?", f.Status)
	}
	if f.EventType != "" {
		w.add("event_type = ?", f.EventType)
	}
	return f != DeliveryFilter{}
}

// RetryDelivery makes a delivery of the endpoint due now, whatever became of it.
// One that is being attempted at this moment is left to that. ErrState when the
// endpoint is off.
func (s *Store) RetryDelivery(ctx context.Context, w Webhook, id string) (Delivery, error) {
	const q = `
		UPDATE webhook_deliveries
		   SET status = 'pending', next_attempt_at = CASE WHEN leased THEN next_attempt_at ELSE $3 END, held_due = NULL, updated_at = $3
		 WHERE endpoint_seq = $1 AND id = $2
		RETURNING ` + deliveryColumns
	var d Delivery
	err := s.inTx(ctx, "retry delivery", func(tx *sqlx.Tx) error {
		at, err := s.lockWebhook(ctx, tx, w.AccountID, w.ID)
		if err != nil {
			return err
		}
		if err := tx.GetContext(ctx, &d, q, at.Seq, id, NewTime(s.now())); err != nil {
			return s.wrap(err, "delivery "+id)
		}
		if !at.Active {
			return fmt.Errorf("endpoint %s is off: %w", w.ID, ErrState)
		}
		return nil
	})
	if err != nil {
		return Delivery{}, err
	}
	s.changed([]topic{{kind: topicWebhooks}}, 1)
	return d, nil
}

// SweepDeliveries deletes some of the deliveries that are older than
// DeliveryLife or whose endpoint is deleted, and returns how many; 0 means that
// there were none.
func (s *Store) SweepDeliveries(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	const (
		// From one endpoint to the next, by index.
		orphaned = `
		WITH RECURSIVE present (seq) AS (
			SELECT min(endpoint_seq) FROM webhook_deliveries
			UNION ALL
			SELECT (SELECT min(d.endpoint_seq) FROM webhook_deliveries d WHERE d.endpoint_seq > present.seq)
			  FROM present WHERE present.seq IS NOT NULL)
		SELECT seq FROM present p
		 WHERE seq IS NOT NULL AND NOT EXISTS (SELECT 1 FROM webhook_endpoints w WHERE w.seq = p.seq)
		 LIMIT 1`
		orphans = `DELETE FROM webhook_deliveries WHERE seq IN
			(SELECT seq FROM webhook_deliveries WHERE endpoint_seq = $1 ORDER BY seq LIMIT $2)`
	)
	n, err := s.sweepOld(ctx, "webhook_deliveries", DeliveryLife)
	if err != nil || n > 0 {
		return n, err
	}
	var gone []int64
	if err := s.read.SelectContext(ctx, &gone, orphaned); err != nil || len(gone) == 0 {
		return 0, s.wrap(err, "deliveries without an endpoint")
	}
	return s.sweep(ctx, "sweep deliveries", orphans, gone[0], sweepBatch)
}

// told is an event that endpoints may have to be told of.
type told struct {
	account, inbox int64 // inbox 0: about none
	message        int64 // the email or message; 0: about none
	id             string
	typ            EventType
}

const webhooksOf = `SELECT seq, account_id, events, inboxes FROM webhook_endpoints WHERE account_id IN ({rows}) AND active ORDER BY seq`

// tellWebhooks makes, in the transaction that wrote these events, a delivery of
// each for each endpoint that wants it, and returns how many.
func (s *Store) tellWebhooks(ctx context.Context, tx *sqlx.Tx, events []told, now Time) (int, error) {
	accounts := make([][2]int64, len(events))
	for i, e := range events {
		accounts[i][0] = e.account
	}
	endpoints := map[int64][]Webhook{} // by account
	err := s.hot.webhooksOf.Find(ctx, tx, batch.Sorted(accounts), func(rows *sql.Rows) error {
		var w Webhook
		if err := rows.Scan(&w.Seq, &w.AccountID, &w.Events, &w.Inboxes); err != nil {
			return err
		}
		endpoints[w.AccountID] = append(endpoints[w.AccountID], w)
		return nil
	})
	if err != nil || len(endpoints) == 0 {
		return 0, errIn("endpoints of events", err)
	}
	var rows []any
	n := 0
	for _, e := range events {
		for i := range endpoints[e.account] {
			w := &endpoints[e.account][i]
			if !w.Wants(e.typ, e.inbox) {
				continue
			}
			at := now.UnixMicro()
			var message any
			if e.message != 0 {
				message = e.message
			}
			rows = append(rows, e.account, w.Seq, message, NewID("dlv_", now.Time), e.id, string(e.typ), string(DeliveryPending), int64(0), at, at, at)
			n++
		}
	}
	return n, errIn("insert deliveries", s.hot.deliveries.Exec(ctx, tx, rows))
}
