package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// A backup is older than what has happened since: mail that it shows as waiting
// may be long delivered, and the webhooks that it shows as pending long posted.
// So what waits in a restored database is held: it has a held_due, the time when
// it was due, in place of that time, and nobody takes it up until an operator
// lets it go or gives it up. What comes later is not held.

// Held counts what is held: recipients of mail, scheduled emails, and deliveries
// to webhook endpoints.
type Held struct{ Recipients, Scheduled, Deliveries int64 }

// None says that nothing is.
func (h Held) None() bool { return h == Held{} }

// hold is run by PostgreSQL's own tools too, at the end of a restore. What a node
// had in hand is due since it came into being.
const hold = `
	UPDATE recipients SET held_due = CASE WHEN leased THEN created_at ELSE next_attempt_at END, next_attempt_at = NULL,
		leased = false, fence = fence + 1 WHERE next_attempt_at IS NOT NULL;
	UPDATE webhook_deliveries SET held_due = CASE WHEN leased THEN created_at ELSE next_attempt_at END, next_attempt_at = NULL,
		leased = false, fence = fence + 1 WHERE next_attempt_at IS NOT NULL;
	UPDATE emails SET held_due = due_at, due_at = NULL WHERE due_at IS NOT NULL;`

// Hold holds everything that waits to be sent or posted now. No node may be
// serving: what it has in hand it may still bring to its end.
func (s *Store) Hold(ctx context.Context) error {
	return s.inTx(ctx, "hold what waits", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, hold)
		return err
	})
}

// Held says how much is held.
func (s *Store) Held(ctx context.Context) (Held, error) {
	const q = `SELECT
		(SELECT count(*) FROM recipients WHERE held_due IS NOT NULL) AS recipients,
		(SELECT count(*) FROM emails WHERE held_due IS NOT NULL) AS scheduled,
		(SELECT count(*) FROM webhook_deliveries WHERE held_due IS NOT NULL) AS deliveries`
	var h Held
	return h, s.wrap(s.read.GetContext(ctx, &h, q), "what is held")
}

// LetGo makes what is held wait again as it did before, and returns how much:
// all of it, or, unless after is zero, what was not due until then. The time for
// retries of mail begins anew.
func (s *Store) LetGo(ctx context.Context, after time.Time) (Held, error) {
	const (
		some       = ` WHERE %s IN (SELECT %[1]s FROM %s WHERE held_due >= $1 ORDER BY held_due LIMIT $2)`
		recipients = `UPDATE recipients SET next_attempt_at = held_due, held_due = NULL, created_at = $3`
		scheduled  = `UPDATE emails SET due_at = held_due, held_due = NULL`
		deliveries = `UPDATE webhook_deliveries SET next_attempt_at = held_due, held_due = NULL`
	)
	from := Time{time.UnixMicro(0)}
	if !after.IsZero() {
		from = NewTime(after)
	}
	var h Held
	for _, kind := range []struct {
		n    *int64
		q    string
		more []any
	}{
		{&h.Recipients, recipients + fmt.Sprintf(some, "seq", "recipients"), []any{NewTime(s.now())}},
		{&h.Scheduled, scheduled + fmt.Sprintf(some, "message_seq", "emails"), nil},
		{&h.Deliveries, deliveries + fmt.Sprintf(some, "seq", "webhook_deliveries"), nil},
	} {
		for {
			n, err := s.sweep(ctx, "let go", kind.q, append([]any{from, sweepBatch}, kind.more...)...)
			if err != nil {
				return h, err
			}
			if *kind.n += int64(n); n == 0 {
				break
			}
		}
	}
	s.changed([]topic{{kind: topicQueue}, {kind: topicWebhooks}}, 1)
	return h, nil
}

// GiveUpHeld ends all that is held and returns how much that was. Recipients have
// failed, with why as the reason, scheduled emails are cancelled, both with their
// events; webhooks are not told of what they were to be told of.
func (s *Store) GiveUpHeld(ctx context.Context, why string) (h Held, err error) {
	if h.Deliveries, err = s.giveUpDeliveries(ctx, why); err != nil {
		return h, err
	}
	if h.Recipients, err = s.giveUpRecipients(ctx, why); err != nil {
		return h, err
	}
	h.Scheduled, err = s.giveUpScheduled(ctx)
	return h, err
}

func (s *Store) giveUpDeliveries(ctx context.Context, why string) (n int64, err error) {
	const q = `UPDATE webhook_deliveries SET status = 'failed', held_due = NULL, last_error = $1, updated_at = $2
		WHERE seq IN (SELECT seq FROM webhook_deliveries WHERE held_due IS NOT NULL LIMIT $3)`
	for {
		some, err := s.sweep(ctx, "give up deliveries", q, why, NewTime(s.now()), sweepBatch)
		if err != nil || some == 0 {
			return n, err
		}
		n += int64(some)
	}
}

func (s *Store) giveUpRecipients(ctx context.Context, why string) (n int64, err error) {
	const q = `SELECT seq, message_seq FROM recipients WHERE held_due IS NOT NULL AND status = 'queued' ORDER BY held_due LIMIT $1`
	for {
		var rows []Recipient
		if err := s.read.SelectContext(ctx, &rows, q, sweepBatch); err != nil || len(rows) == 0 {
			return n, s.wrap(err, "held recipients")
		}
		for _, r := range rows {
			err := s.RecordReport(ctx, Report{RecipientSeq: r.Seq, MessageSeq: r.MessageSeq, Status: RecipientFailed, Response: why})
			if err != nil {
				return n, err
			}
			n++
		}
	}
}

func (s *Store) giveUpScheduled(ctx context.Context) (n int64, err error) {
	const q = `SELECT m.id, m.account_id FROM emails e JOIN messages m ON m.seq = e.message_seq WHERE e.held_due IS NOT NULL LIMIT $1`
	for {
		var rows []Message
		if err := s.read.SelectContext(ctx, &rows, q, sweepBatch); err != nil || len(rows) == 0 {
			return n, s.wrap(err, "held emails")
		}
		for _, m := range rows {
			if err := s.CancelEmail(ctx, m.AccountID, m.ID); err != nil {
				return n, err
			}
			n++
		}
	}
}
