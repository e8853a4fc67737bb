package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/postroom/postroom/store/internal/engine"
)

// Errors that callers can distinguish. Each is wrapped with one fact, for example
// "inbox ibx_1: not found".
var (
	// ErrNotFound is the error for what does not exist, is deleted, or belongs
	// to another account, and for names that the database cannot hold.
	ErrNotFound = errors.New("not found")
	// ErrAddressTaken means that the address is or was an inbox.
	ErrAddressTaken = errors.New("address is or was in use")
	// ErrContactExists means that another contact has the address.
	ErrContactExists = errors.New("address is a contact's")
	// ErrDomainTaken means that the account has the domain already.
	ErrDomainTaken = errors.New("domain is in the account already")
	// ErrDomainNotVerified means that the account has no verified domain with
	// that name.
	ErrDomainNotVerified = errors.New("domain is not verified for the account")
	// ErrState means that a row is not in the state that the change needs.
	ErrState = errors.New("not in the right state")
	// ErrPolicyChanged means that the send policy of an inbox is not the one that
	// a message was checked against.
	ErrPolicyChanged = errors.New("send policy changed")
	// ErrCursor means that a cursor is not ours, or of another list, filter or
	// account.
	ErrCursor = errors.New("not a cursor of this list")
	// ErrIdempotencyRaced means that another call with the same idempotency
	// key committed first: its response can be read now.
	ErrIdempotencyRaced = errors.New("idempotency key used by a call that committed first")
	// ErrThreadLimit means that a thread has had so many messages from us lately that
	// two programs may be replying to each other.
	ErrThreadLimit = errors.New("too many sends in one thread")
	// ErrUnavailable means that the database or the blob storage does not respond,
	// or that the store is closed. Trying again later may help.
	ErrUnavailable = engine.ErrUnavailable
	// ErrDamaged means that stored content is not what was written.
	ErrDamaged = errors.New("the stored content is damaged")
	// ErrFull means that the disk has no room.
	ErrFull = errors.New("no space left")
)

// wrap adds what to err and marks faults of the connection as ErrUnavailable.
func (s *Store) wrap(err error, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", what, err)
	}
	switch s.engine.Fault(err) {
	case engine.Cancelled:
		return fmt.Errorf("%s: %w: %w", what, context.Canceled, err)
	case engine.BadText:
		return fmt.Errorf("%s: %w: %w", what, ErrNotFound, err)
	case engine.Locked:
		return fmt.Errorf("%s: %w: %w: %w", what, ErrUnavailable, errLocked, err)
	case engine.Unavailable:
		return fmt.Errorf("%s: %w: %w", what, ErrUnavailable, err)
	case engine.Full:
		return fmt.Errorf("%s: %w: %w", what, ErrFull, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (s *Store) unavailable(err error) bool {
	f := s.engine.Fault(err)
	return f == engine.Unavailable || f == engine.Locked
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

// TakenError is an ErrAddressTaken for a field of an inbox other than its name.
type TakenError struct {
	Param string // the field
	Text  string // what has the address
}

func (e *TakenError) Error() string { return e.Param + ": " + e.Text }

// Is reports whether target is ErrAddressTaken.
func (e *TakenError) Is(target error) bool { return target == ErrAddressTaken }
