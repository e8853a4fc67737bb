package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"

	"github.com/pressly/goose/v3/lock"
)

var _ lock.SessionLocker = (*sqliteLocker)(nil)

// sqliteLocker keeps processes that start at the same time from taking the same
// migration steps: it holds the lock of an empty database file beside the real
// one, which the steps themselves must be able to lock.
type sqliteLocker struct {
	path string
	db   *sql.DB
}

// SessionLock waits for the lock for up to five minutes.
func (l *sqliteLocker) SessionLock(ctx context.Context, _ *sql.Conn) (err error) {
	path := l.path + "-migrate"
	if err := makePrivate(path); err != nil {
		return fmt.Errorf("make the lock of the migrations: %w", err)
	}
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_pragma=busy_timeout(300000)"
	if l.db, err = sql.Open("sqlite", dsn); err != nil {
		return fmt.Errorf("open the lock of the migrations: %w", err)
	}
	l.db.SetMaxOpenConns(1)
	if _, err := l.db.ExecContext(ctx, `BEGIN EXCLUSIVE`); err != nil {
		return errors.Join(fmt.Errorf("take the lock of the migrations: %w", err), l.db.Close())
	}
	return nil
}

// SessionUnlock lets the next one have the lock.
func (l *sqliteLocker) SessionUnlock(context.Context, *sql.Conn) error { return l.db.Close() }
