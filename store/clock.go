package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// clockEvery is how often a node asks the server for its time, and with every
	// schemaLooks-th time whether a newer program has changed the schema.
	clockEvery  = 2 * time.Second
	schemaLooks = 5
)

// Now is the time by the clock of the database server on PostgreSQL, as exactly as
// the node could measure it, and by that of this machine on SQLite.
func (s *Store) Now() time.Time { return s.clock.Now() }

// now is Now.
func (s *Store) now() time.Time { return s.clock.Now() }

// serverClock asks the database server for its time, and notes how it differs
// from the node's. On SQLite, and in tests with a clock of their own, it is the
// node's.
func (s *Store) serverClock(ctx context.Context, from sqlx.QueryerContext) (time.Time, error) {
	if s.clock.Alone {
		return s.now(), nil
	}
	before := s.clock.Node()
	var us int64
	if err := sqlx.GetContext(ctx, from, &us, `SELECT `+s.engine.Clock("NULL")); err != nil {
		return time.Time{}, s.wrap(err, "clock of the server")
	}
	server := time.UnixMicro(us)
	s.noteClock(ctx, before, server)
	return server, nil
}

// noteClock notes the server's time, which was asked for at before.
func (s *Store) noteClock(ctx context.Context, before, server time.Time) {
	s.clock.Measured(before, server, s.clock.Node())
	s.notePause(ctx)
}

// sharedNow is the parameter for engine.Clock: nil when the server's clock
// counts.
func (s *Store) sharedNow() any {
	if s.clock.Alone {
		return NewTime(s.now())
	}
	return nil
}

// mayDelete returns whether this node may delete what is old. It asks the database
// server for its time first, so that what follows goes by that.
func (s *Store) mayDelete(ctx context.Context) (bool, error) {
	now, err := s.serverClock(ctx, s.read)
	if err != nil || s.Paused() != nil {
		return false, err
	}
	return s.guard.pass(ctx, s, now)
}

// Why a node neither claims nor deletes.
const (
	PausedClock  = "clock"  // its clock differs too much from the database server's
	PausedSchema = "schema" // a newer program has changed the schema
)

// Paused returns why the node neither claims nor deletes; nil when it does both.
func (s *Store) Paused() []string {
	var why []string
	if s.clock.Skewed() {
		why = append(why, PausedClock)
	}
	if s.schemaNewer.Load() {
		why = append(why, PausedSchema)
	}
	return why
}

// ClockAhead is by how much the node's clock is ahead of the database server's.
func (s *Store) ClockAhead() time.Duration { return -s.clock.Ahead() }

// pauseLog remembers what was logged.
type pauseLog struct {
	mu  sync.Mutex
	was string
}

// notePause logs when the node pauses, and when it goes on.
func (s *Store) notePause(ctx context.Context) {
	why := s.Paused()
	s.pauses.mu.Lock()
	defer s.pauses.mu.Unlock()
	if is := fmt.Sprint(why); is != s.pauses.was {
		switch {
		case why != nil:
			s.log.ErrorContext(ctx, "this node neither claims nor deletes", "reasons", why,
				"clock_ahead", s.ClockAhead().Round(time.Millisecond).String())
		case s.pauses.was != "":
			s.log.InfoContext(ctx, "this node claims and deletes again")
		}
		if s.pauses.was = is; why == nil {
			s.pauses.was = ""
		}
	}
}

// watchServer asks the server now and then for its time, and whether a newer
// program has changed the schema. An error says nothing of either.
func (s *Store) watchServer(ctx context.Context) {
	if s.engine.Alone() {
		return
	}
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for looks := 0; ; looks++ {
		_, _ = s.serverClock(ctx, s.read)
		if looks%schemaLooks == 0 {
			s.lookAtSchema(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lookAtSchema notes whether the schema is newer than this program's.
func (s *Store) lookAtSchema(ctx context.Context) {
	const q = `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`
	var have int64
	if err := s.read.GetContext(ctx, &have, q); err == nil {
		s.schemaNewer.Store(have > s.schema)
		s.notePause(ctx)
	}
}
