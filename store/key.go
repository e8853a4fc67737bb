package store

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/work"
)

// KeyMode is live, test or restricted.
type KeyMode string

// The modes of a key.
const (
	KeyLive       KeyMode = "live"
	KeyTest       KeyMode = "test"
	KeyRestricted KeyMode = "restricted"
)

// Key is an API key. The secret itself is never stored, only its SHA-256.
type Key struct {
	Seq        int64           `db:"seq"`
	AccountID  int64           `db:"account_id"`
	ID         string          `db:"id"`
	Name       string          `db:"name"`
	Hash       []byte          `db:"hash"`
	Prefix     string          `db:"prefix"`
	Hint       string          `db:"hint"`
	Mode       KeyMode         `db:"mode"`
	Scopes     JSON[[]string]  `db:"scopes"`
	AllowedIPs JSON[[]string]  `db:"allowed_ips"`
	InboxIDs   *JSON[[]string] `db:"inbox_ids"` // nil: all inboxes
	ExpiresAt  *Time           `db:"expires_at"`
	LastUsedAt *Time           `db:"last_used_at"`
	RevokedAt  *Time           `db:"revoked_at"`
	CreatedAt  Time            `db:"created_at"`
	Limits     *JSON[Limits]   `db:"limits"` // nil: none
	// CreatedBy is the id of the key that created it and that it is revoked and stopped
	// with. It is nil for a key of a person or of an admin key.
	CreatedBy *string `db:"created_by"`
}

// Bounds returns the limits of the key, or nil.
func (k Key) Bounds() *Limits { return bounds(k.Limits) }

const (
	keyWritten = `account_id, id, name, hash, prefix, hint, mode, scopes, allowed_ips, inbox_ids, expires_at, created_at, limits, created_by`
	keyColumns = `seq, last_used_at, revoked_at, ` + keyWritten
)

// HashKey returns the hash under which a key's secret is stored.
func HashKey(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}

// CreateKey stores k, which carries AccountID, Name, Hash, Prefix, Hint, Mode,
// CreatedBy and what limits it, and returns it with its id. It returns ErrState when
// CreatedBy has been revoked.
func (s *Store) CreateKey(ctx context.Context, k Key) (Key, error) {
	var out Key
	err := s.inTx(ctx, "create key", func(tx *sqlx.Tx) error {
		if k.CreatedBy != nil {
			if err := s.lockAccountFor(ctx, tx, k.AccountID, k.CreatedBy); err != nil {
				return err
			}
		}
		var err error
		out, err = s.insertKey(ctx, tx, k)
		return err
	})
	return out, err
}

// lockAccount locks the account until the transaction ends.
func (s *Store) lockAccount(ctx context.Context, tx *sqlx.Tx, accountID int64) error {
	_, err := getOne[int64](ctx, tx, `SELECT seq FROM accounts WHERE seq = $1`+s.engine.LockRow(), accountID)
	return errIn("lock the account", err)
}

// lockAccountFor locks the account, so that none of its keys is revoked until the
// transaction ends. It returns ErrState when the key by, which may be nil, has been
// revoked.
func (s *Store) lockAccountFor(ctx context.Context, tx *sqlx.Tx, accountID int64, by *string) error {
	const live = `SELECT count(*) FROM api_keys WHERE account_id = $1 AND id = $2 AND revoked_at IS NULL`
	if err := s.lockAccount(ctx, tx, accountID); err != nil || by == nil {
		return err
	}
	n, err := getOne[int](ctx, tx, live, accountID, *by)
	if err == nil && n == 0 {
		err = fmt.Errorf("key %s is revoked: %w", *by, ErrState)
	}
	return err
}

func (s *Store) insertKey(ctx context.Context, tx *sqlx.Tx, k Key) (_ Key, err error) {
	now := s.now()
	k.ID, k.CreatedAt = NewID("key_", now), NewTime(now)
	k.Seq, err = insertRow(ctx, tx, "api_keys", keyWritten, k)
	return k, err
}

// KeyByHash returns the key whose secret has this hash. It returns ErrNotFound if
// there is none, or it is revoked or expired.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (Key, error) {
	const q = `SELECT ` + keyColumns + ` FROM api_keys
		WHERE hash = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)`
	return readOne[Key](ctx, s, "key", q, hash, NewTime(s.now()))
}

// EndedKey returns the key with this hash although it is revoked or expired, or
// ErrNotFound.
func (s *Store) EndedKey(ctx context.Context, hash []byte) (Key, error) {
	const q = `SELECT ` + keyColumns + ` FROM api_keys WHERE hash = $1 AND (revoked_at IS NOT NULL OR expires_at <= $2)`
	return readOne[Key](ctx, s, "key", q, hash, NewTime(s.now()))
}

// BoundBy reports whether the key reaches only inboxes in inboxIDs. Nil inboxIDs
// means all inboxes.
func (k Key) BoundBy(inboxIDs []string) bool {
	if inboxIDs == nil {
		return true
	}
	return k.InboxIDs != nil &&
		!slices.ContainsFunc(k.InboxIDs.V, func(id string) bool { return !slices.Contains(inboxIDs, id) })
}

const oneKey = `SELECT ` + keyColumns + ` FROM api_keys WHERE account_id = $1 AND id = $2 AND revoked_at IS NULL`

// Key returns the account's key, unless it is revoked.
func (s *Store) Key(ctx context.Context, accountID int64, id string) (Key, error) {
	return readOne[Key](ctx, s, "key "+id, oneKey, accountID, id)
}

// ListKeys returns a page of the account's keys that are not revoked, newest
// first. When inboxIDs is not nil, the page holds only keys that are BoundBy it.
func (s *Store) ListKeys(ctx context.Context, accountID int64, inboxIDs []string, p Page) (List[Key], error) {
	const q = `SELECT ` + keyColumns + ` FROM api_keys
		WHERE account_id = $1 AND revoked_at IS NULL AND seq < $2 AND (inbox_ids IS NOT NULL OR NOT CAST($4 AS BOOLEAN))
		ORDER BY seq DESC LIMIT $3`
	scope := fmt.Sprintf("keys/%d/%t/%q", accountID, inboxIDs != nil, inboxIDs)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Key]{}, err
	}
	var rows []Key
	for len(rows) <= p.Limit {
		some, err := readAll[Key](ctx, s, "list keys", q, accountID, before, p.Limit+1, inboxIDs != nil)
		if err != nil {
			return List[Key]{}, err
		}
		end := len(some) <= p.Limit
		if !end {
			before = some[p.Limit].Seq
		}
		rows = append(rows, slices.DeleteFunc(some, func(k Key) bool { return !k.BoundBy(inboxIDs) })...)
		if end {
			break
		}
	}
	rows = rows[:min(len(rows), p.Limit+1)]
	return page(s, scope, p.Limit, rows, func(k Key) position { return position{Seq: k.Seq} }), nil
}

// UpdateKey lets edit change the name and the limits of a key. An error of edit
// changes nothing. It returns ErrNotFound if the account has no active key with this id.
func (s *Store) UpdateKey(ctx context.Context, accountID int64, id string, edit func(*Key) error) (Key, error) {
	const save = `UPDATE api_keys SET name = :name, limits = :limits WHERE seq = :seq`
	return transact(ctx, s, "key "+id, func(tx *sqlx.Tx) (Key, error) {
		return editRow(ctx, s, tx, oneKey, []any{accountID, id}, edit, save)
	})
}

// RevokeKey revokes the key and the keys that descend from it at once, and disables
// their webhook endpoints. It returns ErrNotFound if the account has no active key
// with this id.
func (s *Store) RevokeKey(ctx context.Context, accountID int64, id string) error {
	return s.inTx(ctx, "revoke key", func(tx *sqlx.Tx) error { return s.revokeKey(ctx, tx, accountID, id) })
}

func (s *Store) revokeKey(ctx context.Context, tx *sqlx.Tx, accountID int64, id string) error {
	const (
		revoke = `UPDATE api_keys SET revoked_at = $3 WHERE account_id = $1 AND id = $2 AND revoked_at IS NULL`
		// The key and the keys that descend from it.
		family = `WITH RECURSIVE family (id) AS (
			SELECT id FROM api_keys WHERE account_id = $1 AND id = $2
			UNION SELECT k.id FROM family f JOIN api_keys k ON k.created_by = f.id WHERE k.account_id = $1) `
		rest = family + `UPDATE api_keys SET revoked_at = $3
			WHERE account_id = $1 AND revoked_at IS NULL AND id IN (SELECT id FROM family)`
		off = family + `UPDATE webhook_endpoints SET active = false, disabled_reason =
				CASE WHEN owner_key IN (SELECT id FROM family) THEN 'the key that created it was revoked'
				ELSE 'the key that changed its URL or secret was revoked' END
			WHERE account_id = $1 AND active AND (owner_key IN (SELECT id FROM family)
				OR url_by IN (SELECT id FROM family) OR secret_by IN (SELECT id FROM family))`
	)
	if err := s.lockAccountFor(ctx, tx, accountID, nil); err != nil {
		return err
	}
	now := NewTime(s.now())
	if err := oneRow("key "+id, ErrNotFound)(tx.ExecContext(ctx, revoke, accountID, id, now)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, rest, accountID, id, now); err != nil {
		return errIn("revoke the keys that it created", err)
	}
	_, err := tx.ExecContext(ctx, off, accountID, id)
	return errIn("turn off webhook endpoints", err)
}

// usedKeys holds the last use of keys that is not written yet.
type usedKeys struct {
	mu sync.Mutex
	at map[int64]Time // by sequence number of the key
}

// KeyUsed notes that the key was used just now. It is written soon, together
// with that of other keys.
func (s *Store) KeyUsed(k Key) {
	now := NewTime(s.now())
	s.used.mu.Lock()
	defer s.used.mu.Unlock()
	if s.used.at == nil {
		s.used.at = map[int64]Time{}
	}
	s.used.at[k.Seq] = now
}

// take returns what is to be written, and forgets it.
func (u *usedKeys) take() map[int64]Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.at
	u.at = nil
	return at
}

// noteUsedKeys writes when keys were used until ctx ends, and then once more.
func (s *Store) noteUsedKeys(ctx context.Context) {
	flush := func(ctx context.Context) {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), keyUsedEvery/5)
		defer cancel()
		if err := s.FlushUsedKeys(last); err != nil {
			s.log.WarnContext(ctx, "when keys were used is not written", "error", err)
		}
	}
	work.Every(ctx, keyUsedEvery, flush)
	flush(ctx)
}

// FlushUsedKeys writes when keys were used. What cannot be written is lost.
func (s *Store) FlushUsedKeys(ctx context.Context) error {
	const q = `UPDATE api_keys SET last_used_at = $2 WHERE seq = $1 AND (last_used_at IS NULL OR last_used_at < $2)`
	at := s.used.take()
	if len(at) == 0 {
		return nil
	}
	return s.inTx(ctx, "note used keys", func(tx *sqlx.Tx) error {
		for _, seq := range slices.Sorted(maps.Keys(at)) { // all nodes lock the rows in the same order
			if _, err := tx.ExecContext(ctx, q, seq, at[seq]); err != nil {
				return err
			}
		}
		return nil
	})
}
