package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// ErrNameTaken means that the name is that of another user.
var ErrNameTaken = errors.New("name is another user's")

// User is a person who uses the dashboard. The name is what they sign in with:
// it is one of the whole install, in whatever case it is written.
type User struct {
	Seq       int64   `db:"seq"`
	AccountID int64   `db:"account_id"`
	ID        string  `db:"id"`
	Name      string  `db:"name"`
	Password  *string `db:"password"` // its hash; nil: a one-time link has to set it first
	RemovedAt *Time   `db:"removed_at"`
	CreatedAt Time    `db:"created_at"`
}

const userColumns = `seq, account_id, id, name, password, removed_at, created_at`

// UserLink is a link that sets a password, once.
type UserLink struct {
	Hash      []byte // SHA-256 of its token
	ExpiresAt time.Time
}

// foldUser is how the name of a user is kept and looked up.
func foldUser(name string) string { return strings.ToLower(name) }

// CreateUser makes a user of the account, who sets a password by the link.
// ErrNameTaken when somebody has the name.
func (s *Store) CreateUser(ctx context.Context, accountID int64, name string, link UserLink) (User, error) {
	var u User
	err := s.inTx(ctx, "create user", func(tx *sqlx.Tx) error {
		var err error
		u, err = s.insertUser(ctx, tx, accountID, name, link)
		return err
	})
	return u, err
}

func (s *Store) insertUser(ctx context.Context, tx *sqlx.Tx, accountID int64, name string, link UserLink) (User, error) {
	const q = `
		INSERT INTO users (account_id, id, name, created_at)
		VALUES ($1, $2, $3, $4)
		ON CONFLICT (name) WHERE removed_at IS NULL DO NOTHING
		RETURNING ` + userColumns
	now := s.now()
	var u User
	err := tx.GetContext(ctx, &u, q, accountID, NewID("usr_", now), foldUser(name), NewTime(now))
	if errors.Is(err, sql.ErrNoRows) {
		return u, fmt.Errorf("user %s: %w", name, ErrNameTaken)
	}
	if err != nil {
		return u, err
	}
	return u, putUserLink(ctx, tx, u.Seq, link)
}

func putUserLink(ctx context.Context, tx *sqlx.Tx, user int64, link UserLink) error {
	const q = `
		INSERT INTO user_links (user_seq, hash, expires_at) VALUES ($1, $2, $3)
		ON CONFLICT (user_seq) DO UPDATE SET hash = excluded.hash, expires_at = excluded.expires_at`
	_, err := tx.ExecContext(ctx, q, user, link.Hash, NewTime(link.ExpiresAt))
	return err
}

// UserByName returns the user who signs in with that name. ErrNotFound when
// there is none, or they were removed.
func (s *Store) UserByName(ctx context.Context, name string) (User, error) {
	const q = `SELECT ` + userColumns + ` FROM users WHERE name = $1 AND removed_at IS NULL`
	var u User
	if err := s.read.GetContext(ctx, &u, q, foldUser(name)); err != nil {
		return User{}, s.wrap(err, "user")
	}
	return u, nil
}

// ListUsers returns a page of the account's users who are not removed, newest
// first.
func (s *Store) ListUsers(ctx context.Context, accountID int64, p Page) (List[User], error) {
	const q = `SELECT ` + userColumns + ` FROM users
		WHERE account_id = $1 AND removed_at IS NULL AND seq < $2 ORDER BY seq DESC LIMIT $3`
	scope := fmt.Sprintf("users/%d", accountID)
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[User]{}, err
	}
	var rows []User
	if err := s.read.SelectContext(ctx, &rows, q, accountID, before, p.Limit+1); err != nil {
		return List[User]{}, s.wrap(err, "list users")
	}
	return page(s, scope, p.Limit, rows, func(u User) position { return position{seq: u.Seq} }), nil
}

// ResetUser takes the password of the user away, ends what they are signed in
// to, and lets the link set another; earlier links end. ErrNotFound when there is
// no such user.
func (s *Store) ResetUser(ctx context.Context, name string, link UserLink) (User, error) {
	const q = `UPDATE users SET password = NULL WHERE name = $1 AND removed_at IS NULL RETURNING ` + userColumns
	return s.changeUser(ctx, "reset user", q, []any{foldUser(name)}, func(tx *sqlx.Tx, u User) error {
		return putUserLink(ctx, tx, u.Seq, link)
	})
}

// RemoveUser ends what the user may do: nobody signs in as them any more. The
// name is free again. ErrNotFound when there is no such user.
func (s *Store) RemoveUser(ctx context.Context, name string) (User, error) {
	const (
		q     = `UPDATE users SET removed_at = $2, password = NULL WHERE name = $1 AND removed_at IS NULL RETURNING ` + userColumns
		links = `DELETE FROM user_links WHERE user_seq = $1`
	)
	return s.changeUser(ctx, "remove user", q, []any{foldUser(name), NewTime(s.now())}, func(tx *sqlx.Tx, u User) error {
		_, err := tx.ExecContext(ctx, links, u.Seq)
		return err
	})
}

// changeUser runs q, which returns the one user that it changed, ends the user's
// sessions, and does then what follows.
func (s *Store) changeUser(ctx context.Context, what, q string, args []any, then func(*sqlx.Tx, User) error) (User, error) {
	const end = `DELETE FROM user_sessions WHERE user_seq = $1`
	var u User
	err := s.inTx(ctx, what, func(tx *sqlx.Tx) error {
		u = User{}
		err := tx.GetContext(ctx, &u, q, args...)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("user: %w", ErrNotFound)
		}
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, end, u.Seq); err != nil {
			return err
		}
		return then(tx, u)
	})
	return u, err
}
