package store

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// stuckAfter is how long a batch may be written before the node counts as
	// unhealthy.
	stuckAfter = 10 * time.Second
	// healthPingTimeout bounds one look at the database; the next one waits for
	// its end.
	healthPingTimeout = time.Minute
)

// healthPing is one look at the database that all who ask share, so that a
// database that hangs holds one connection and not one for each of them.
type healthPing struct {
	mu   sync.Mutex
	done chan struct{} // nil: none is under way
	err  error
}

// Healthy returns nil when the store can work: the database answers before ctx
// ends, and no write has been under way for more than 10 seconds.
func (s *Store) Healthy(ctx context.Context) error {
	if since := s.busySince(); !since.IsZero() && time.Since(since) > stuckAfter {
		return fmt.Errorf("%w: a write has been under way for %v", ErrUnavailable, time.Since(since).Round(time.Second))
	}
	done := s.ping.start(s)
	select {
	case <-done:
		s.ping.mu.Lock()
		defer s.ping.mu.Unlock()
		return s.ping.err
	case <-ctx.Done():
		return fmt.Errorf("%w: the database does not answer: %w", ErrUnavailable, ctx.Err())
	}
}

// start returns a channel that is closed at the end of a look at the database.
func (p *healthPing) start(s *Store) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done != nil {
		return p.done
	}
	done := make(chan struct{})
	p.done = done
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), healthPingTimeout)
		defer cancel()
		err := s.Ping(ctx)
		p.mu.Lock()
		p.done, p.err = nil, err
		p.mu.Unlock()
		close(done)
	}()
	return done
}

// busySince returns when the oldest write that is under way was begun; the zero
// time when there is none.
func (s *Store) busySince() (oldest time.Time) {
	note := func(since time.Time, busy bool) {
		if busy && (oldest.IsZero() || since.Before(oldest)) {
			oldest = since
		}
	}
	for _, c := range s.commits {
		note(c.BusySince())
	}
	note(s.results.BusySince())
	return oldest
}
