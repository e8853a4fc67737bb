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
	Plan        string  `db:"plan"`
	PausedAt    *Time   `db:"paused_at"`
	PauseReason *string `db:"pause_reason"`
	CreatedAt   Time    `db:"created_at"`
}

const accountColumns = `seq, id, name, plan, paused_at, pause_reason, created_at`

// FirstAccount returns the oldest account, or ErrNotFound before Bootstrap.
func (s *Store) FirstAccount(ctx context.Context) (Account, error) {
	const q = `SELECT ` + accountColumns + ` FROM accounts ORDER BY seq LIMIT 1`
	var a Account
	err := s.read.GetContext(ctx, &a, q)
	return a, s.wrap(err, "first account")
}

// Bootstrap makes the first account with its first key, unless there is an
// account already: then it returns ErrState and changes nothing.
func (s *Store) Bootstrap(ctx context.Context, name string, key Key) (Account, Key, error) {
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
		key, err = s.insertKey(ctx, tx, key)
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
