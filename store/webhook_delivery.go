package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/work"
)

// DeliveryStatus is the state of a delivery.
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
	// attempt; nil means that it has none, or that no attempt was made.
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

// DeliveryFilter selects deliveries of an endpoint. Empty fields match all.
type DeliveryFilter struct {
	Status    DeliveryStatus
	EventType EventType
}

// ListDeliveries returns a page of the endpoint's deliveries, newest first. It
// reads so many of them that a page may hold fewer than the limit, or none,
// and yet not be the last.
func (s *Store) ListDeliveries(ctx context.Context, w Webhook, f DeliveryFilter, p Page) (List[Delivery], error) {
	scope := fmt.Sprintf("deliveries/%d/%d/%q/%q", w.AccountID, w.Seq, f.Status, f.EventType)
	var filter func(*where)
	if f != (DeliveryFilter{}) {
		filter = f.add
	}
	return listFiltered(ctx, s, p, scope, "list deliveries", `SELECT `+deliveryColumns+` FROM webhook_deliveries`,
		conditions("endpoint_seq = ?", w.Seq), "seq", deliveryColumns, filter, func(d Delivery) int64 { return d.Seq })
}

// add adds the conditions of the filter.
func (f DeliveryFilter) add(w *where) {
	if f.Status != "" {
		w.add("status = ?", f.Status)
	}
	if f.EventType != "" {
		w.add("event_type = ?", f.EventType)
	}
}

// DeliveryRate is how the latest deliveries of an endpoint ended.
type DeliveryRate struct {
	Succeeded int `db:"succeeded"`
	Failed    int `db:"failed"` // also those whose last attempt failed and that are retried
}

// ratedDeliveries is how many deliveries of an endpoint DeliveryRate reads.
const ratedDeliveries = 1000

// DeliveryRate counts the deliveries of an endpoint that were attempted since a
// time, of the latest ratedDeliveries.
func (s *Store) DeliveryRate(ctx context.Context, accountID int64, webhookID string, since time.Time) (DeliveryRate, error) {
	const q = `
		SELECT coalesce(sum(CASE WHEN status = 'succeeded' THEN 1 ELSE 0 END), 0) AS succeeded,
		       coalesce(sum(CASE WHEN status = 'failed' OR status = 'pending' AND attempts > CASE WHEN leased THEN 1 ELSE 0 END THEN 1 ELSE 0 END), 0) AS failed
		  FROM (SELECT status, attempts, leased, updated_at FROM webhook_deliveries
		         WHERE endpoint_seq = (SELECT seq FROM webhook_endpoints WHERE account_id = $1 AND id = $2)
		         ORDER BY seq DESC LIMIT $3) d
		 WHERE updated_at >= $4`
	return readOne[DeliveryRate](ctx, s, "rate of deliveries", q, accountID, webhookID, ratedDeliveries, NewTime(since))
}

// Delivery returns a delivery of the account with its event, which is nil if it was
// deleted.
func (s *Store) Delivery(ctx context.Context, accountID int64, id string) (Delivery, *Event, error) {
	const (
		delivery = `SELECT ` + deliveryColumns + ` FROM webhook_deliveries WHERE account_id = $1 AND id = $2`
		event    = `SELECT ` + eventColumns + eventTables + ` WHERE e.account_id = $1 AND e.id = $2`
	)
	d, err := readOne[Delivery](ctx, s, "delivery "+id, delivery, accountID, id)
	if err != nil {
		return d, nil, err
	}
	events, err := readAll[Event](ctx, s, "event of a delivery", event, accountID, d.EventID)
	return d, first(events), err
}

// RetryDelivery makes a delivery of the endpoint due now, whatever became of it.
// One that is being attempted at this moment is left to that. It returns ErrState
// if the endpoint is off.
func (s *Store) RetryDelivery(ctx context.Context, w Webhook, id string) (Delivery, error) {
	const q = `
		UPDATE webhook_deliveries
		   SET status = 'pending', next_attempt_at = CASE WHEN leased THEN next_attempt_at ELSE $3 END, held_due = NULL, updated_at = $3
		 WHERE endpoint_seq = $1 AND id = $2
		RETURNING ` + deliveryColumns
	d, err := transact(ctx, s, "retry delivery", func(tx *sqlx.Tx) (Delivery, error) {
		at, err := s.lockWebhook(ctx, tx, w.AccountID, w.ID)
		if err != nil {
			return Delivery{}, err
		}
		d, err := getOne[Delivery](ctx, tx, q, at.Seq, id, NewTime(s.now()))
		if err != nil {
			return d, s.wrap(err, "delivery "+id)
		}
		return d, at.isOn()
	})
	if err == nil {
		s.changed([]topic{{kind: topicWebhooks}}, 1)
	}
	return d, err
}

// isOn returns ErrState for an endpoint that is off.
func (w *Webhook) isOn() error {
	if !w.Active {
		return fmt.Errorf("endpoint %s is off: %w", w.ID, ErrState)
	}
	return nil
}

// Replayed is the result of a replay.
type Replayed struct {
	Queued int
	More   bool
	Until  Time // of the last event that was considered
}

// ReplayDeliveries makes new deliveries to the endpoint of the events since a time
// that it wants, oldest first, of these types or, if types is nil, of all. It
// considers the MaxReplay oldest events of the log by their times, so that Until is
// the time to continue from. It returns ErrState if the endpoint is off.
func (s *Store) ReplayDeliveries(ctx context.Context, w Webhook, since time.Time, types []EventType) (Replayed, error) {
	from := NewTime(since)
	f := EventFilter{Types: types}
	events, err := s.eventsSince(ctx, w.AccountID, from, s.limits.replay+1)
	if err != nil {
		return Replayed{}, err
	}
	out := Replayed{More: len(events) > s.limits.replay, Until: from}
	events = events[:min(len(events), s.limits.replay)]
	if n := len(events); n > 0 {
		out.Until = events[n-1].CreatedAt
	}
	// The order of the log is that in which the events of a message happened.
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Seq, b.Seq) })
	out.Queued, err = transact(ctx, s, "replay deliveries", func(tx *sqlx.Tx) (int, error) {
		at, err := s.lockWebhook(ctx, tx, w.AccountID, w.ID)
		if err == nil {
			err = at.isOn()
		}
		if err != nil {
			return 0, err
		}
		now := NewTime(s.now())
		var rows []newRow
		for _, e := range events {
			if f.matches(e) && at.wantsOf(e.Type, e.InboxID) && (e.MessageID != nil || !namesMail(e.Type)) {
				rows = append(rows, at.delivery(e.ID, e.Type, orNull(e.MessageSeq), now))
			}
		}
		return len(rows), s.insert(ctx, tx, rows...)
	})
	if err != nil {
		return Replayed{}, err
	}
	s.changed([]topic{{kind: topicWebhooks}}, 1)
	return out, nil
}

// namesMail reports whether events of this type are about a message or an email.
func namesMail(t EventType) bool {
	return strings.HasPrefix(string(t), "message.") || strings.HasPrefix(string(t), "email.")
}

// sweepDeliveries deletes some of the deliveries that are older than DeliveryTTL or whose
// endpoint is deleted.
func (s *Store) sweepDeliveries(ctx context.Context) (int, error) {
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
	n, err := s.sweepLog(ctx, "webhook_deliveries", DeliveryTTL, "")
	if err != nil || n > 0 {
		return n, err
	}
	gone, err := readAll[int64](ctx, s, "deliveries without an endpoint", orphaned)
	if err != nil || len(gone) == 0 {
		return 0, err
	}
	return s.exec(ctx, "sweep deliveries", orphans, gone[0], sweepBatch)
}

// notice is an event that endpoints may have to be notified of.
type notice struct {
	account, inbox int64 // inbox 0: about none
	message        int64 // the email or message; 0: about none
	id             string
	typ            EventType
}

// ClaimedDelivery is a delivery that this process alone attempts until the lease
// ends.
type ClaimedDelivery struct {
	Delivery
	Webhook Webhook
	// Event is nil when it is deleted.
	Event *Event
}

// ClaimDeliveries takes up to limit deliveries that are due and not busy, those that
// are due for longest first. Those of an endpoint that is off wait until it is on. A
// node that is paused claims none.
//
// The deliveries to one endpoint about one email or message are a queue: only the
// first that is pending can be claimed. Those behind it are put off until its next
// attempt, and its success or final failure makes the next of them due (see
// recordDelivery).
func (s *Store) ClaimDeliveries(ctx context.Context, limit int, lease time.Duration, busy *work.Busy) (claimed []ClaimedDelivery, err error) {
	if s.Paused() != nil {
		return nil, nil
	}
	err = s.inTx(ctx, "claim deliveries", func(tx *sqlx.Tx) error {
		claimed = nil
		server, err := s.serverClock(ctx, tx)
		if err != nil {
			return err
		}
		now, until := NewTime(server), NewTime(server.Add(lease))
		for range claimRounds {
			due, err := s.findDue(ctx, tx, WorkDeliveries, now, limit, busy, oldestFirst)
			if err != nil || len(due) == 0 {
				return err
			}
			heads, err := s.headsOf(ctx, tx, due, now)
			if err != nil {
				return err
			}
			if len(heads) == 0 {
				continue // all were put off
			}
			var rows []Delivery
			if err := s.claim(ctx, tx, WorkDeliveries, heads, until, &rows, deliveryColumns); err != nil {
				return err
			}
			claimed, err = claimedDeliveries(ctx, tx, rows)
			return err
		}
		return nil
	})
	if err == nil && len(claimed) > 0 {
		crashpoint.Reach(crashpoint.WebhookClaim)
	}
	return claimed, err
}

// headsOf returns those of the deliveries that are the first of their queues, or in
// none. It puts off the others, unless what they wait for is among these, and those of
// endpoints that are off.
func (s *Store) headsOf(ctx context.Context, tx *sqlx.Tx, due []int64, now Time) (heads []int64, err error) {
	const (
		find = `
		SELECT d.seq, coalesce(w.active, false) AS active, coalesce((SELECT min(h.seq) FROM webhook_deliveries h
				WHERE h.endpoint_seq = d.endpoint_seq AND h.message_seq = d.message_seq AND h.next_attempt_at IS NOT NULL), d.seq) AS head
		  FROM webhook_deliveries d LEFT JOIN webhook_endpoints w ON w.seq = d.endpoint_seq WHERE d.seq IN (?)`
		putOff = `
		UPDATE webhook_deliveries SET next_attempt_at = (SELECT h.next_attempt_at FROM webhook_deliveries h
				WHERE h.endpoint_seq = webhook_deliveries.endpoint_seq AND h.message_seq = webhook_deliveries.message_seq
				  AND h.next_attempt_at IS NOT NULL ORDER BY h.seq LIMIT 1)
		 WHERE seq IN (?)`
		wait = `UPDATE webhook_deliveries SET next_attempt_at = ? WHERE seq IN (?)`
	)
	var found []struct {
		Seq    int64 `db:"seq"`
		Active bool  `db:"active"`
		Head   int64 `db:"head"`
	}
	if err := selectIn(ctx, tx, &found, find, due); err != nil {
		return nil, errIn("queues of deliveries", err)
	}
	var off, behind []int64
	for _, d := range found {
		switch {
		case !d.Active:
			off = append(off, d.Seq)
		case d.Head == d.Seq:
			heads = append(heads, d.Seq)
		case !slices.Contains(due, d.Head):
			behind = append(behind, d.Seq)
		}
	}
	if len(off) > 0 {
		err = execIn(ctx, tx, wait, NewTime(now.Add(offEndpointWait)), off)
	}
	if err == nil && len(behind) > 0 {
		err = execIn(ctx, tx, putOff, behind)
	}
	return heads, errIn("put deliveries off", err)
}

// claimedDeliveries reads the endpoints and events of deliveries.
func claimedDeliveries(ctx context.Context, tx *sqlx.Tx, rows []Delivery) ([]ClaimedDelivery, error) {
	var endpoints []Webhook
	of := rising(rows, func(d Delivery) int64 { return d.EndpointSeq })
	if err := selectIn(ctx, tx, &endpoints, `SELECT `+webhookColumns+` FROM webhook_endpoints WHERE seq IN (?)`, of); err != nil {
		return nil, errIn("endpoints of deliveries", err)
	}
	var events []Event
	ids := each(rows, func(d Delivery) string { return d.EventID })
	if err := selectIn(ctx, tx, &events, `SELECT `+eventColumns+eventTables+` WHERE e.id IN (?)`, ids); err != nil {
		return nil, errIn("events of deliveries", err)
	}
	bySeq := keyed(endpoints, func(w *Webhook) int64 { return w.Seq })
	byID := keyed(events, func(e *Event) string { return e.ID })
	claimed := make([]ClaimedDelivery, 0, len(rows))
	for _, d := range rows {
		if w := bySeq[d.EndpointSeq]; w != nil { // else it was deleted just now
			claimed = append(claimed, ClaimedDelivery{d, *w, byID[d.EventID]})
		}
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
	data, err := json.Marshal(WebhookEventData{WebhookID: w.ID})
	if err != nil {
		return ClaimedDelivery{}, errIn("test endpoint", err)
	}
	now := NewTime(s.now())
	e := Event{AccountID: w.AccountID, ID: NewLongID("evt_", now.Time), Type: EventWebhookTest, Data: string(data), CreatedAt: now}
	d, err := transact(ctx, s, "test endpoint", func(tx *sqlx.Tx) (Delivery, error) {
		if _, err := s.lockWebhook(ctx, tx, w.AccountID, w.ID); err != nil {
			return Delivery{}, err
		}
		if _, err := tx.ExecContext(ctx, event, e.AccountID, e.ID, e.Type, e.TestMode, e.Data, now); err != nil {
			return Delivery{}, err
		}
		return getOne[Delivery](ctx, tx, q, w.AccountID, w.Seq, NewLongID("dlv_", now.Time), e.ID, e.Type, NewTime(now.Add(lease)), now)
	})
	return ClaimedDelivery{d, w, &e}, err
}

// DeliveryResult is the result of an attempt.
type DeliveryResult struct {
	// Seq, EndpointSeq and Fence are as claimed. When the delivery has been
	// claimed again since, the result is not recorded.
	Seq, EndpointSeq, Fence int64
	// Status is the new status of the delivery; DeliveryPending means that there
	// will be another attempt, at Next.
	Status DeliveryStatus
	Next   *Time
	// Untried means that there was no attempt: the delivery is unchanged and due.
	Untried bool

	StatusCode *int
	Error      *string
	Body       *string
	DurationMs *int64

	// Counts means that the result counts for the endpoint, which is disabled
	// after FailingEndpointTTL without a success.
	Counts bool
	// Gone is the reason to disable the endpoint at once, or empty.
	Gone string
}

const failedLong = "every attempt failed for 5 days"

// RecordDelivery stores what came of an attempt. It returns ErrState if another
// claim has taken the delivery since, or it is deleted.
func (s *Store) RecordDelivery(ctx context.Context, r DeliveryResult) error {
	if (r.Status == DeliveryPending) != (r.Next != nil) && !r.Untried {
		return fmt.Errorf("a delivery that is %s and its next attempt do not agree", r.Status)
	}
	off, err := transact(ctx, s, "record delivery", func(tx *sqlx.Tx) ([]turnedOff, error) {
		off, err := s.recordDelivery(ctx, tx, &r, NewTime(s.now()))
		crashpoint.Reach(crashpoint.WebhookMark)
		return off, err
	})
	for _, w := range off {
		s.log.WarnContext(ctx, "webhook endpoint turned off", "webhook_id", w.ID, "reason", w.Reason)
	}
	return err
}

// recordDelivery records the result of one attempt, and returns its endpoint if that turned it
// off.
func (s *Store) recordDelivery(ctx context.Context, tx *sqlx.Tx, r *DeliveryResult, now Time) ([]turnedOff, error) {
	const (
		own = `, last_status_code = $6, last_error = $7, last_body = $8, last_duration_ms = $9, updated_at = $10`
		// What was put off behind a delivery that has ended is due now. What was not is
		// written too: then a claim that is putting it off at this moment comes first.
		moveOn = `
		UPDATE webhook_deliveries SET next_attempt_at = CASE WHEN next_attempt_at > $2 THEN $2 ELSE next_attempt_at END
		 WHERE NOT leased AND next_attempt_at IS NOT NULL AND seq =
			(SELECT min(f.seq) FROM webhook_deliveries d JOIN webhook_deliveries f ON f.endpoint_seq = d.endpoint_seq AND f.message_seq = d.message_seq
			  WHERE d.seq = $1 AND f.next_attempt_at IS NOT NULL AND f.seq > d.seq)`
	)
	end, set, args := leaseEnd{r.Seq, r.Fence, string(r.Status), r.Next, r.Untried}, own, []any{r.StatusCode, r.Error, r.Body, r.DurationMs, now}
	if r.Untried {
		end.status, end.next, set, args = string(DeliveryPending), &now, "", nil
	}
	ours, err := s.endLease(ctx, tx, WorkDeliveries, end, set, args...)
	if err == nil && !ours {
		err = fmt.Errorf("delivery %d at fence %d: %w", r.Seq, r.Fence, ErrState)
	}
	if err != nil || r.Untried {
		return nil, err
	}
	if r.Status != DeliveryPending {
		if _, err := s.prepared.Exec(ctx, tx, moveOn, r.Seq, now); err != nil {
			return nil, errIn("move the queue on", err)
		}
	}
	if !r.Counts {
		return nil, nil
	}
	return s.recordEndpoint(ctx, tx, r, now)
}

// turnedOff is an endpoint that the service has turned off, and why.
type turnedOff struct {
	ID     string `db:"id"`
	Reason string `db:"disabled_reason"`
}

// recordEndpoint records on the endpoint how a delivery went, and returns the endpoint if
// that turned it off.
func (s *Store) recordEndpoint(ctx context.Context, tx *sqlx.Tx, r *DeliveryResult, now Time) (off []turnedOff, err error) {
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
		err = s.prepared.Select(ctx, tx, &off, gone, r.EndpointSeq, r.Gone)
		return off, err
	case r.Status == DeliverySucceeded:
		_, err = s.prepared.Exec(ctx, tx, well, r.EndpointSeq)
		return nil, err
	}
	if _, err = s.prepared.Exec(ctx, tx, badly, r.EndpointSeq, now); err != nil {
		return nil, err
	}
	err = s.prepared.Select(ctx, tx, &off, giveUp, r.EndpointSeq, NewTime(now.Add(-FailingEndpointTTL)), failedLong)
	return off, err
}
