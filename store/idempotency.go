package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Once makes a call happen once: its response is cached, under the caller's
// idempotency key, by the transaction that does the work.
type Once struct {
	AccountID int64
	// Operation is the method and path that the key is for.
	Operation string
	// Key is the caller's idempotency key.
	Key string
	// BodyHash distinguishes a repeated request from another one with the same key.
	BodyHash []byte
	// TTL is how long the response is cached, at most CachedResponseTTL; 0 means
	// CachedResponseTTL.
	TTL time.Duration
	// Render makes the response from the stored row: the HTTP status, the name of its
	// type, and its JSON. It runs inside the transaction and must be quick.
	Render func(row any) (CachedResponse, error)
}

// oldest is the time after which a response was cached that is valid at now.
func (o *Once) oldest(now time.Time) Time {
	return NewTime(now.Add(-cmp.Or(o.TTL, CachedResponseTTL)))
}

// CachedResponse is what is stored for an idempotency key.
type CachedResponse struct {
	BodyHash []byte `db:"body_hash"`
	Status   int    `db:"status"`
	Kind     string `db:"kind"`
	Body     []byte `db:"body"`
}

// Emptied reports whether the response was deleted together with the content of the
// message or draft that it showed. The key stays used, so that a repeated request
// sends nothing again.
func (r CachedResponse) Emptied() bool { return len(r.Body) == 0 }

// CachedResponse returns the response that was cached under the key within
// CachedResponseTTL, or ErrNotFound.
func (s *Store) CachedResponse(ctx context.Context, accountID int64, operation, key string) (CachedResponse, error) {
	return s.CachedResponseTo(ctx, Once{AccountID: accountID, Operation: operation, Key: key})
}

// CachedResponseTo returns the valid cached response to once, or ErrNotFound.
func (s *Store) CachedResponseTo(ctx context.Context, once Once) (CachedResponse, error) {
	const q = `SELECT body_hash, status, kind, body FROM idempotency
		WHERE account_id = $1 AND operation = $2 AND key = $3 AND created_at > $4`
	return readOne[CachedResponse](ctx, s, "cached response", q, once.AccountID, once.Operation, once.Key, once.oldest(s.now()))
}

const (
	responseColumns = "account_id, operation, key, body_hash, status, kind, body, resource_id, created_at"
	// replaceResponse replaces a response that is too old; a time follows.
	replaceResponse = `
	ON CONFLICT (account_id, operation, key) DO UPDATE
	   SET body_hash = excluded.body_hash, status = excluded.status, kind = excluded.kind, body = excluded.body,
	       resource_id = excluded.resource_id, created_at = excluded.created_at
	 WHERE idempotency.created_at <= `
	insertResponse = `INSERT INTO idempotency (` + responseColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)` + replaceResponse + `$10`
)

// responseRow is the row of the response to once.
func (once *Once) responseRow(resourceID string, row any, now time.Time) ([]any, error) {
	r, err := once.Render(row)
	if err != nil {
		return nil, fmt.Errorf("render the response: %w", err)
	}
	return []any{once.AccountID, once.Operation, once.Key, once.BodyHash, int64(r.Status), r.Kind, string(r.Body), resourceID, NewTime(now).UnixMicro()}, nil
}

// cacheResponse caches the response to once, unless that is nil. It returns
// ErrIdempotencyRaced when another call has cached one under the same key: then the
// transaction of this call must not commit.
func (s *Store) cacheResponse(ctx context.Context, tx *sqlx.Tx, once *Once, resourceID string, row any) error {
	if once == nil {
		return nil
	}
	now := s.now()
	args, err := once.responseRow(resourceID, row, now)
	if err != nil {
		return err
	}
	res, err := s.prepared.Exec(ctx, tx, insertResponse, append(args, once.oldest(now))...)
	if err != nil {
		return err
	}
	return one(res, "idempotency key", ErrIdempotencyRaced)
}

// isCached reports whether a valid response to once is cached.
func (s *Store) isCached(ctx context.Context, tx *sqlx.Tx, once *Once) (bool, error) {
	const q = `SELECT count(*) FROM idempotency WHERE account_id = $1 AND operation = $2 AND key = $3 AND created_at > $4`
	if once == nil {
		return false, nil
	}
	var n int
	err := tx.GetContext(ctx, &n, q, once.AccountID, once.Operation, once.Key, once.oldest(s.now()))
	return n > 0, err
}

// emptyResponses deletes the cached responses that show messages or drafts, and
// keeps their keys. The ids follow.
const emptyResponses = `UPDATE idempotency SET body = '' WHERE resource_id IN `

// dropCachedResponses deletes the cached responses that show a resource.
func (s *Store) dropCachedResponses(ctx context.Context, tx *sqlx.Tx, resourceID string) error {
	_, err := tx.ExecContext(ctx, dropResponses, resourceID)
	return err
}

const dropResponses = `DELETE FROM idempotency WHERE resource_id = $1`

// dropInboxResponses deletes the cached responses that show a deleted inbox, its
// messages or its drafts, in short transactions.
func (s *Store) dropInboxResponses(ctx context.Context, in Inbox) error {
	const (
		messages = `DELETE FROM idempotency WHERE resource_id IN (SELECT m.id FROM messages m
			JOIN idempotency c ON c.resource_id = m.id WHERE m.inbox_seq = $1 AND m.created_at > $2 LIMIT $3)`
		drafts = `DELETE FROM idempotency WHERE resource_id IN (SELECT d.id FROM drafts d
			JOIN idempotency c ON c.resource_id = d.id WHERE d.inbox_seq = $1 AND d.updated_at > $2 LIMIT $3)`
	)
	since := NewTime(s.now().Add(-2 * CachedResponseTTL))
	for _, q := range []string{messages, drafts} {
		if _, err := s.execRepeatedly(ctx, "delete cached responses", q, in.Seq, since, sweepBatch); err != nil {
			return err
		}
	}
	return nil
}
