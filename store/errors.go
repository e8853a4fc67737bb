package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
)

// What a caller can tell apart. Each comes wrapped with one fact, such as
// "inbox ibx_1: not found".
var (
	// ErrNotFound is the answer for what is not there, is deleted, or belongs
	// to another account, and for names that the database cannot hold.
	ErrNotFound = errors.New("not found")
	// ErrAddressTaken means that the address is or was an inbox.
	ErrAddressTaken = errors.New("address is or was in use")
	// ErrContactExists means that the address is that of another contact.
	ErrContactExists = errors.New("address is a contact's")
	// ErrDomainTaken means that the account has the domain already.
	ErrDomainTaken = errors.New("domain is in the account already")
	// ErrDomainNotVerified means that the account has no verified domain of that
	// name.
	ErrDomainNotVerified = errors.New("domain is not verified for the account")
	// ErrState means that a row is not in the state that the change needs.
	ErrState = errors.New("not in the right state")
	// ErrPolicyChanged means that an inbox has another send policy than the one
	// that a mail was held against.
	ErrPolicyChanged = errors.New("send policy changed")
	// ErrCursor means that a cursor is not ours, or of another list, filter or
	// account.
	ErrCursor = errors.New("not a cursor of this list")
	// ErrIdempotencyRaced means that another call with the same idempotency
	// key committed first: its answer can be read now.
	ErrIdempotencyRaced = errors.New("idempotency key used by a call that committed first")
	// ErrLoop means that a thread has had so many messages from us lately that
	// two programs may be answering each other.
	ErrLoop = errors.New("too many sends in one thread")
	// ErrUnavailable means that the database or the blob storage does not answer,
	// or that the store is closed. Trying again later may help.
	ErrUnavailable = errors.New("storage unavailable")
	// ErrFull means that the disk has no room.
	ErrFull = errors.New("no space left")
)

// errClosed is the answer of a committer after Close.
var errClosed = fmt.Errorf("%w: the store is closed", ErrUnavailable)

// wrap adds what to err and marks faults of the connection as ErrUnavailable.
func (s *Store) wrap(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", what, err)
	case s.dialect.cancelled(err):
		return fmt.Errorf("%s: %w: %w", what, context.Canceled, err)
	case s.dialect.badText(err):
		return fmt.Errorf("%s: %w: %w", what, ErrNotFound, err)
	case s.dialect.locked(err):
		return fmt.Errorf("%s: %w: %w: %w", what, ErrUnavailable, errLocked, err)
	case s.unavailable(err):
		return fmt.Errorf("%s: %w: %w", what, ErrUnavailable, err)
	case s.dialect.full(err):
		return fmt.Errorf("%s: %w: %w", what, ErrFull, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// isClosed says whether err is what database/sql says, without a name for it,
// to who comes after Close.
func isClosed(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); text == "sql: database is closed" || text == "sql: statement is closed" {
			return true
		}
	}
	return false
}

func (s *Store) unavailable(err error) bool {
	var netErr net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &netErr) || isClosed(err) || s.dialect.unavailable(err)
}

// one turns an UPDATE that should have touched exactly one row into an error
// when it did not.
func one(res sql.Result, what string, missing error) error {
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n != 1 {
		return fmt.Errorf("%s: %w", what, missing)
	}
	return nil
}
