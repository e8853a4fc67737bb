package store

import (
	"context"
	"errors"
	"time"
)

const (
	// askFor is how long a database that went away in a commit is waited for
	// while a caller waits, and askLong when nobody does.
	askFor  = 5 * time.Second
	askLong = 15 * time.Second
	// askEvery is the pause between two questions.
	askEvery = 100 * time.Millisecond
)

// committed says whether the transaction tx, of which all but the commit was
// done, was written although err is all that came back: the connection may have
// broken after the commit. Who would be told "not written" then would do the
// same again. It asks for so long, whether ctx ends or not; messages is how many
// the transaction is about.
func (s *Store) committed(ctx context.Context, tx string, err error, askFor time.Duration, messages int) bool {
	if tx == "" || !errors.Is(err, ErrUnavailable) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
	defer cancel()
	for {
		known, committed, err := s.engine.Committed(ctx, tx)
		if err == nil && known {
			return committed
		}
		select {
		case <-ctx.Done():
			s.log.WarnContext(ctx, "the database went away in a commit: whether it was written is not known",
				"messages", messages)
			return false
		case <-time.After(askEvery):
		}
	}
}
