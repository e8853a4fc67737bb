package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// AnswerLife is how long a stored answer is given again.
const AnswerLife = 24 * time.Hour

// Once makes a call happen once: the answer is stored, under a key of the
// caller's choice, by the transaction that does the work.
type Once struct {
	AccountID int64
	// Operation is the method and path that the key is for.
	Operation string
	// Key is the caller's idempotency key.
	Key string
	// BodyHash tells a repeat from another request under the same key.
	BodyHash []byte
	// Life is how long the answer is given again, at most AnswerLife; 0 means that.
	Life time.Duration
	// Render makes the answer from the stored row: the HTTP status, the name of
	// its type, and its JSON. It runs inside the transaction and must be quick.
	Render func(row any) (Answer, error)
}

// oldest is when the oldest answer was stored that still holds at now.
func (o *Once) oldest(now time.Time) Time {
	life := o.Life
	if life == 0 {
		life = AnswerLife
	}
	return NewTime(now.Add(-life))
}

// compare orders by what must be unique.
func (o *Once) compare(other *Once) int {
	return cmp.Or(cmp.Compare(o.AccountID, other.AccountID), cmp.Compare(o.Operation, other.Operation), cmp.Compare(o.Key, other.Key))
}

// Answer is a stored answer.
type Answer struct {
	BodyHash []byte `db:"body_hash"`
	Status   int    `db:"status"`
	Kind     string `db:"kind"`
	Body     []byte `db:"body"`
}

// Answer returns what was stored under the key less than AnswerLife ago, or
// ErrNotFound.
func (s *Store) Answer(ctx context.Context, accountID int64, operation, key string) (Answer, error) {
	return s.AnswerTo(ctx, Once{AccountID: accountID, Operation: operation, Key: key})
}

// AnswerTo returns the stored answer to once that still holds, or ErrNotFound.
func (s *Store) AnswerTo(ctx context.Context, once Once) (Answer, error) {
	const q = `SELECT body_hash, status, kind, body FROM idempotency
		WHERE account_id = $1 AND operation = $2 AND key = $3 AND created_at > $4`
	var a Answer
	err := s.read.GetContext(ctx, &a, q, once.AccountID, once.Operation, once.Key, once.oldest(s.now()))
	return a, s.wrap(err, "stored answer")
}

// saveAnswer stores the answer to once, if there is one. ErrIdempotencyRaced
// when another call has stored one under the same key: then nothing of this
// call's work may stay.
func (s *Store) saveAnswer(ctx context.Context, tx *sqlx.Tx, once *Once, resourceID string, row any) error {
	const q = `
		INSERT INTO idempotency (account_id, operation, key, body_hash, status, kind, body, resource_id, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (account_id, operation, key) DO UPDATE
		   SET body_hash = excluded.body_hash, status = excluded.status, kind = excluded.kind, body = excluded.body,
		       resource_id = excluded.resource_id, created_at = excluded.created_at
		 WHERE idempotency.created_at <= $10`
	if once == nil {
		return nil
	}
	a, err := once.Render(row)
	if err != nil {
		return fmt.Errorf("render the answer: %w", err)
	}
	now := s.now()
	res, err := tx.ExecContext(ctx, q, once.AccountID, once.Operation, once.Key, once.BodyHash, a.Status, a.Kind, string(a.Body),
		resourceID, NewTime(now), once.oldest(now))
	if err != nil {
		return err
	}
	return one(res, "idempotency key", ErrIdempotencyRaced)
}

// answered says whether an answer to once is stored that still holds.
func (s *Store) answered(ctx context.Context, tx *sqlx.Tx, once *Once) (bool, error) {
	const q = `SELECT count(*) FROM idempotency WHERE account_id = $1 AND operation = $2 AND key = $3 AND created_at > $4`
	if once == nil {
		return false, nil
	}
	var n int
	err := tx.GetContext(ctx, &n, q, once.AccountID, once.Operation, once.Key, once.oldest(s.now()))
	return n > 0, err
}

// dropAnswers deletes the stored answers that tell of a resource.
func (s *Store) dropAnswers(ctx context.Context, tx *sqlx.Tx, resourceID string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM idempotency WHERE resource_id = $1`, resourceID)
	return err
}

// dropInboxAnswers deletes the cached responses that hold an inbox, which is
// deleted, its messages or its drafts, in short transactions.
func (s *Store) dropInboxAnswers(ctx context.Context, in Inbox) error {
	const (
		messages = `DELETE FROM idempotency WHERE resource_id IN (SELECT m.id FROM messages m
			JOIN idempotency c ON c.resource_id = m.id WHERE m.inbox_seq = $1 AND m.created_at > $2 LIMIT $3)`
		drafts = `DELETE FROM idempotency WHERE resource_id IN (SELECT d.id FROM drafts d
			JOIN idempotency c ON c.resource_id = d.id WHERE d.inbox_seq = $1 AND d.updated_at > $2 LIMIT $3)`
	)
	since := NewTime(s.now().Add(-2 * AnswerLife))
	for _, q := range []string{messages, drafts} {
		if err := s.sweepAll(ctx, "delete cached responses", q, in.Seq, since, sweepBatch); err != nil {
			return err
		}
	}
	return nil
}

// SweepAnswers deletes some of the stored answers that are too old to be given
// again, and returns how many; 0 means that there were none.
func (s *Store) SweepAnswers(ctx context.Context) (int, error) {
	if may, err := s.mayDelete(ctx); !may {
		return 0, err
	}
	const q = `DELETE FROM idempotency WHERE (account_id, operation, key) IN
		(SELECT account_id, operation, key FROM idempotency WHERE created_at <= $1 ORDER BY created_at LIMIT $2)`
	return s.sweep(ctx, "sweep stored answers", q, NewTime(s.now().Add(-AnswerLife)), sweepBatch)
}
