package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/postroom/postroom/internal/work"
)

func errIn(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// wasCommitted reports whether the transaction tx was committed although its commit
// returned err: the connection may have broken after the commit, and a caller that
// learns "not written" would repeat the work. It asks until timeout, even when ctx
// ends; messages is the number of messages in the transaction. isStored looks for
// something that the transaction wrote: a server that crashed before it wrote the
// transaction to disk gives its name to a later one, which may have been committed.
func (s *Store) wasCommitted(
	ctx context.Context, tx string, err error, timeout time.Duration, messages int, isStored func(context.Context) (bool, error),
) bool {
	if tx == "" || !errors.Is(err, ErrUnavailable) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	for {
		known, committed, err := s.engine.Committed(ctx, tx)
		if err == nil && known && committed {
			committed, err = isStored(ctx)
		}
		if err == nil && known {
			return committed
		}
		if !work.Pause(ctx, outcomeEvery, nil) {
			s.log.WarnContext(ctx, "the database went away in a commit: whether it was written is not known",
				"messages", messages)
			return false
		}
	}
}

// Why a transaction was rolled back. Both come with ErrUnavailable.
var (
	// errLocked means that another transaction holds a row for longer than lock_timeout.
	errLocked = errors.New("another transaction holds the row")
	// errConflict means that each of maxTries attempts conflicted with other transactions.
	errConflict = errors.New("other transactions conflict with this one")
)
