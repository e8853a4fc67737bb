package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
)

const (
	// MaxSkew is by how much the clock of a node may differ from that of the
	// database server. Beyond that the node neither claims nor deletes.
	MaxSkew = 30 * time.Second
	// minCorrection is the difference that is not worth a correction: clocks that
	// NTP keeps are nearer to each other.
	minCorrection = 50 * time.Millisecond
	// clockEvery is how often a node asks the server for its time, and with every
	// schemaLooks-th time whether a newer program has changed the schema.
	clockEvery  = 2 * time.Second
	schemaLooks = 5
)

// clock tells the time of the database server, as far as this node knows it. What
// must not go wrong asks the server itself: see Store.mayDelete and
// dialect.clock.
type clock struct {
	node  func() time.Time
	alone bool // there is no server: the node's clock is right

	correction atomic.Int64 // nanoseconds that are added to the node's time
	ahead      atomic.Int64 // nanoseconds by which the server is ahead of the node
}

// now is the time of the server, to within minCorrection.
func (c *clock) now() time.Time { return c.node().Add(time.Duration(c.correction.Load())) }

// measured notes that the server's clock showed a time, between two moments of
// the node's.
func (c *clock) measured(before, server, after time.Time) {
	if c.alone {
		return
	}
	took := after.Sub(before)
	ahead := server.Sub(before.Round(0)) - took/2
	c.ahead.Store(int64(surely(ahead, took/2)))
	if diff := ahead - time.Duration(c.correction.Load()); surely(diff, took/2).Abs() > minCorrection {
		c.correction.Store(int64(ahead))
	}
}

// surely is the part of a difference that is more than the error with which it
// was measured.
func surely(diff, most time.Duration) time.Duration {
	switch {
	case diff > most:
		return diff - most
	case diff < -most:
		return diff + most
	}
	return 0
}

// skewed says whether the node's clock is too far off.
func (c *clock) skewed() bool { return time.Duration(c.ahead.Load()).Abs() > MaxSkew }

// Now is the time by the clock of the database server on PostgreSQL, as exactly as
// the node could measure it, and by that of this machine on SQLite.
func (s *Store) Now() time.Time { return s.clock.now() }

// now is Now.
func (s *Store) now() time.Time { return s.clock.now() }

// serverClock asks the database server for its time, and notes how it differs
// from the node's. On SQLite, and in tests with a clock of their own, it is the
// node's.
func (s *Store) serverClock(ctx context.Context, from sqlx.QueryerContext) (time.Time, error) {
	if s.clock.alone {
		return s.now(), nil
	}
	before := s.clock.node()
	var us int64
	if err := sqlx.GetContext(ctx, from, &us, `SELECT `+s.dialect.clock("NULL")); err != nil {
		return time.Time{}, s.wrap(err, "clock of the server")
	}
	server := time.UnixMicro(us)
	s.noteClock(ctx, before, server)
	return server, nil
}

// noteClock notes the server's time, which was asked for at before.
func (s *Store) noteClock(ctx context.Context, before, server time.Time) {
	s.clock.measured(before, server, s.clock.node())
	s.notePause(ctx)
}

// sharedNow is the parameter for dialect.clock: nil when the server's clock
// counts.
func (s *Store) sharedNow() any {
	if s.clock.alone {
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
	if s.clock.skewed() {
		why = append(why, PausedClock)
	}
	if s.schemaNewer.Load() {
		why = append(why, PausedSchema)
	}
	return why
}

// ClockAhead is by how much the node's clock is ahead of the database server's.
func (s *Store) ClockAhead() time.Duration { return -time.Duration(s.clock.ahead.Load()) }

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
	if s.dialect.alone() {
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
