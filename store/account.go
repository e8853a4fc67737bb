package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Account owns inboxes, keys and mail. Nothing of one account is ever visible
// to another.
type Account struct {
	Seq         int64   `db:"seq"`
	ID          string  `db:"id"`
	Name        string  `db:"name"`
	Plan        *string `db:"plan"`      // nil: the install's; see Store.Plan
	Inboxes     int64   `db:"inboxes"`   // that are not deleted
	PausedAt    *Time   `db:"paused_at"` // since when it may not send
	PauseReason *string `db:"pause_reason"`
	CreatedAt   Time    `db:"created_at"`
}

const accountColumns = `seq, id, name, plan, inboxes, paused_at, pause_reason, created_at`

// FirstAccount returns the oldest account, or ErrNotFound before Bootstrap.
func (s *Store) FirstAccount(ctx context.Context) (Account, error) {
	const q = `SELECT ` + accountColumns + ` FROM accounts ORDER BY seq LIMIT 1`
	var a Account
	err := s.read.GetContext(ctx, &a, q)
	return a, s.wrap(err, "first account")
}

// Account returns the account with that id.
func (s *Store) Account(ctx context.Context, id string) (Account, error) {
	const q = `SELECT ` + accountColumns + ` FROM accounts WHERE id = $1`
	var a Account
	err := s.read.GetContext(ctx, &a, q, id)
	return a, s.wrap(err, "account "+id)
}

// PublicAccountID returns the public id of an account.
func (s *Store) PublicAccountID(ctx context.Context, seq int64) (string, error) {
	const q = `SELECT id FROM accounts WHERE seq = $1`
	var id string
	err := s.reads.Scan(ctx, q, []any{seq}, &id)
	return id, s.wrap(err, "account")
}

// ListAccounts returns a page of all accounts, newest first.
func (s *Store) ListAccounts(ctx context.Context, p Page) (List[Account], error) {
	const (
		q     = `SELECT ` + accountColumns + ` FROM accounts WHERE seq < $1 ORDER BY seq DESC LIMIT $2`
		scope = "accounts"
	)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[Account]{}, err
	}
	var rows []Account
	if err := s.read.SelectContext(ctx, &rows, q, before, p.Limit+1); err != nil {
		return List[Account]{}, s.wrap(err, "list accounts")
	}
	return page(s, scope, p.Limit, rows, func(a Account) position { return position{seq: a.Seq} }), nil
}

// SetPlan puts the account on the plan of that name, or on the install's own
// when it is nil. ErrNotFound when there is no such account.
func (s *Store) SetPlan(ctx context.Context, id string, plan *string) error {
	const q = `UPDATE accounts SET plan = $2 WHERE id = $1`
	return s.inTx(ctx, "set plan", func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, q, id, plan)
		if err != nil {
			return err
		}
		return one(res, "account "+id, ErrNotFound)
	})
}

// PauseAccount stops the account from sending; what it has queued still goes
// out. When it is paused already, by itself or by an operator, the reason is
// what changes. ErrNotFound when there is no such account.
func (s *Store) PauseAccount(ctx context.Context, id, reason string) error {
	const q = `UPDATE accounts SET paused_at = COALESCE(paused_at, $2), pause_reason = $3 WHERE id = $1`
	return s.inTx(ctx, "pause account", func(tx *sqlx.Tx) error {
		res, err := tx.ExecContext(ctx, q, id, NewTime(s.now()), reason)
		if err != nil {
			return err
		}
		return one(res, "account "+id, ErrNotFound)
	})
}

// ResumeAccount lets the account send again, and begins anew with counting what
// bounces and is complained about. ErrState when it is not paused.
func (s *Store) ResumeAccount(ctx context.Context, id string) error {
	const (
		resume = `UPDATE accounts SET paused_at = NULL, pause_reason = NULL WHERE id = $1 AND paused_at IS NOT NULL RETURNING seq`
		forget = `DELETE FROM daily_counts WHERE account_id = $1 AND inbox_seq = 0 AND kind IN ('tried', 'hard', 'marked')`
	)
	return s.inTx(ctx, "resume account", func(tx *sqlx.Tx) error {
		var seq int64
		err := tx.GetContext(ctx, &seq, resume, id)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("account %s: %w", id, ErrState)
		}
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, forget, seq)
		return err
	})
}

// FirstUser is who the first account begins with.
type FirstUser struct {
	Name string
	Link UserLink
}

// Bootstrap makes the first account with its first key and, unless that is nil,
// its first user, if there is no account already: then it returns ErrState and
// changes nothing.
func (s *Store) Bootstrap(ctx context.Context, name string, key Key, user *FirstUser) (Account, Key, error) {
	var a Account
	err := s.inTx(ctx, "create the first account", func(tx *sqlx.Tx) error {
		if err := s.lockBootstrap(ctx, tx); err != nil {
			return err
		}
		var err error
		if a, err = s.insertAccount(ctx, tx, name); err != nil {
			return err
		}
		key.AccountID = a.Seq
		if key, err = s.insertKey(ctx, tx, key); err != nil || user == nil {
			return err
		}
		_, err = s.insertUser(ctx, tx, a.Seq, user.Name, user.Link)
		return err
	})
	return a, key, err
}

// CreateAccount makes a further account, which has no key yet.
func (s *Store) CreateAccount(ctx context.Context, name string) (Account, error) {
	var a Account
	err := s.inTx(ctx, "create account", func(tx *sqlx.Tx) error {
		var err error
		a, err = s.insertAccount(ctx, tx, name)
		return err
	})
	return a, err
}

func (s *Store) insertAccount(ctx context.Context, tx *sqlx.Tx, name string) (Account, error) {
	const q = `
		INSERT INTO accounts (id, name, created_at)
		VALUES ($1, $2, $3)
		RETURNING ` + accountColumns
	now := s.now()
	var a Account
	err := tx.GetContext(ctx, &a, q, NewID("acc_", now), name, NewTime(now))
	return a, err
}

// lockBootstrap refuses when there is an account. Nodes that start together
// meet at the unique id of a row that only the first can write.
func (s *Store) lockBootstrap(ctx context.Context, tx *sqlx.Tx) error {
	const (
		first = `SELECT seq FROM accounts ORDER BY seq LIMIT 1`
		claim = `INSERT INTO settings (name, value) VALUES ('bootstrap', 'done') ON CONFLICT (name) DO NOTHING`
	)
	res, err := tx.ExecContext(ctx, claim)
	if err != nil {
		return err
	}
	if err := one(res, "first account", ErrState); err != nil {
		return err
	}
	var seq int64
	err = tx.GetContext(ctx, &seq, first)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("first account: %w", ErrState)
}
