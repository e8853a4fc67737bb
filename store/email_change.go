package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// releaseBatch is how many scheduled emails one transaction queues.
const releaseBatch = 500

// An email is scheduled as long as it has a due_at, or a held_due instead (see
// Hold). Who takes that away, to cancel it or to queue it, has it alone: the row
// is held first, and everything else about the email is changed after it.

// CancelEmail ends an email that is scheduled: it is never sent. ErrState when it
// is not scheduled any more.
func (s *Store) CancelEmail(ctx context.Context, accountID int64, id string) error {
	const (
		take   = `UPDATE emails SET due_at = NULL, held_due = NULL WHERE message_seq = $1 AND (due_at IS NOT NULL OR held_due IS NOT NULL)`
		cancel = `UPDATE messages SET status = 'cancelled', settled_at = $2 WHERE seq = $1 AND status = 'scheduled'`
	)
	err := s.inTx(ctx, "cancel email", func(tx *sqlx.Tx) error {
		m, err := s.takeScheduled(ctx, tx, accountID, id, take)
		if err != nil {
			return err
		}
		res, err := tx.ExecContext(ctx, cancel, m.Seq, NewTime(s.now()))
		if err != nil {
			return err
		}
		if err := one(res, "email "+id, ErrState); err != nil {
			return err
		}
		return s.emailEvents(ctx, tx, EventEmailCancelled, cancelledData, []Message{m})
	})
	if err == nil {
		s.changed([]topic{{kind: topicEvents}, {kind: topicWebhooks}}, 1)
	}
	return err
}

// RescheduleEmail changes when a scheduled email is to be sent; a time that is
// not ahead sends it at once, if it may still be sent by rules. ErrState when it is not scheduled any more,
// or held: it may have been sent already.
func (s *Store) RescheduleEmail(ctx context.Context, accountID int64, id string, at Time, rules DueRules) error {
	const (
		put = `UPDATE emails SET due_at = $2, scheduled_at = $2 WHERE message_seq = $1 AND due_at IS NOT NULL`
		now = `UPDATE emails SET due_at = NULL, scheduled_at = NULL WHERE message_seq = $1 AND due_at IS NOT NULL`
	)
	atOnce := !at.After(s.now())
	err := s.inTx(ctx, "reschedule email", func(tx *sqlx.Tx) error {
		if !atOnce {
			_, err := s.takeScheduled(ctx, tx, accountID, id, put, at)
			return err
		}
		m, err := s.takeScheduled(ctx, tx, accountID, id, now)
		if err != nil {
			return err
		}
		return s.release(ctx, tx, []int64{m.Seq}, rules, nil)
	})
	if err == nil && atOnce {
		s.changed([]topic{{kind: topicQueue}, {kind: topicEvents}, {kind: topicWebhooks}}, 1)
	}
	return err
}

// takeScheduled runs an update of a row of emails that must still be scheduled.
func (s *Store) takeScheduled(ctx context.Context, tx *sqlx.Tx, accountID int64, id, update string, args ...any) (Message, error) {
	const find = `SELECT m.seq, m.account_id, m.test_mode` + emailTables + ` WHERE m.account_id = $1 AND m.id = $2`
	var m Message
	err := tx.GetContext(ctx, &m, find, accountID, id)
	if errors.Is(err, sql.ErrNoRows) {
		return m, fmt.Errorf("email %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return m, err
	}
	res, err := tx.ExecContext(ctx, update, append([]any{m.Seq}, args...)...)
	if err != nil {
		return m, err
	}
	return m, one(res, "email "+id, ErrState)
}

// ReleaseScheduled queues the scheduled emails whose time has come, up to a
// number, the earliest first, and returns how many it has taken up. Their time for
// retries begins now. Those that must not leave by rules fail, or become drafts.
func (s *Store) ReleaseScheduled(ctx context.Context, rules DueRules) (int, error) {
	const due = `SELECT message_seq FROM emails WHERE due_at <= $1 LIMIT 1`
	const q = `WITH due AS MATERIALIZED (SELECT message_seq FROM emails WHERE due_at <= $1 ORDER BY due_at LIMIT $2`
	const take = `) UPDATE emails SET due_at = NULL WHERE message_seq IN (SELECT message_seq FROM due) RETURNING message_seq`
	if s.Paused() != nil {
		return 0, nil
	}
	now := NewTime(s.now())
	var seqs []int64
	// Mostly there is none, which needs no transaction to see.
	if err := s.reads.All(ctx, &seqs, due, now); err != nil || len(seqs) == 0 {
		return 0, s.wrap(err, "due emails")
	}
	drafts, err := s.prepareDrafts(ctx, rules, now)
	if err != nil {
		return 0, err
	}
	err = s.inTx(ctx, "queue scheduled emails", func(tx *sqlx.Tx) error {
		seqs = nil
		err := tx.SelectContext(ctx, &seqs, q+s.engine.SkipLocked()+take, now, releaseBatch)
		if err != nil || len(seqs) == 0 {
			return err
		}
		return s.release(ctx, tx, seqs, rules, drafts)
	})
	if err != nil || len(seqs) == 0 {
		return 0, err
	}
	s.changed([]topic{{kind: topicQueue}, {kind: topicEvents}, {kind: topicWebhooks}}, len(seqs))
	return len(seqs), nil
}

// release queues emails whose due_at was taken away by the transaction, but for those
// that must not leave.
func (s *Store) release(ctx context.Context, tx *sqlx.Tx, seqs []int64, rules DueRules, drafts map[int64]*preparedDraft) error {
	const (
		queue = `UPDATE messages SET status = 'queued' WHERE status = 'scheduled' AND seq IN (?) RETURNING seq, account_id, test_mode`
		begin = `UPDATE recipients SET next_attempt_at = ?, created_at = ? WHERE status = 'queued' AND message_seq IN (?)`
	)
	seqs, err := s.checkDue(ctx, tx, seqs, rules, drafts)
	if err != nil || len(seqs) == 0 {
		return err
	}
	q, args, err := sqlx.In(queue, seqs)
	if err != nil {
		return err
	}
	var ms []Message
	if err := tx.SelectContext(ctx, &ms, tx.Rebind(q), args...); err != nil {
		return err
	}
	if len(ms) != len(seqs) {
		return fmt.Errorf("%d of %d emails that were due are scheduled: %w", len(ms), len(seqs), ErrState)
	}
	now := NewTime(s.now())
	if err := execIn(ctx, tx, begin, now, now, seqs); err != nil {
		return err
	}
	return s.emailEvents(ctx, tx, EventEmailQueued, queuedData, ms)
}

// emailEvents writes an event about each of the emails.
func (s *Store) emailEvents(ctx context.Context, tx *sqlx.Tx, typ EventType, data string, ms []Message) error {
	now := NewTime(s.now())
	rows := make([]any, 0, len(ms)*s.hot.events.Columns)
	all := make([]told, 0, len(ms))
	for _, m := range ms {
		id := NewID("evt_", now.Time)
		rows = append(rows, m.AccountID, nil, id, string(typ), m.Seq, m.TestMode, data, now.UnixMicro())
		all = append(all, told{account: m.AccountID, message: m.Seq, id: id, typ: typ})
	}
	if err := s.hot.events.Exec(ctx, tx, rows); err != nil {
		return errIn("insert events", err)
	}
	_, err := s.tellWebhooks(ctx, tx, all, now)
	return err
}
