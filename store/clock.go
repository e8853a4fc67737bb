package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store/internal/engine"
)

const (
	// clockEvery is how often a node asks the server for its time, and with every
	// schemaLooks-th time whether a newer program has changed the schema.
	clockEvery  = 2 * time.Second
	schemaLooks = 5
)

// clockState is what the node knows of its clock, and why it may neither claim nor delete.
type clockState struct {
	clock  engine.Clock
	guard  clockGuard
	pauses pauseLog
	schema int64 // the version of this program's
	// schemaNewer says that a newer program has changed the schema.
	schemaNewer atomic.Bool
}

// Now is the time by the clock of the database server on PostgreSQL, as exactly as
// the node could measure it, and by that of this machine on SQLite.
func (s *Store) Now() time.Time { return s.clock.Now() }

func (s *Store) now() time.Time { return s.clock.Now() }

// serverClock asks the database server for its time, and notes how it differs
// from the node's. On SQLite, and in tests with a clock of their own, it is the
// node's.
func (s *Store) serverClock(ctx context.Context, from sqlx.QueryerContext) (time.Time, error) {
	if s.clock.Alone {
		return s.now(), nil
	}
	begun, node := time.Now(), s.clock.Node()
	var us int64
	if err := sqlx.GetContext(ctx, from, &us, `SELECT `+s.engine.Clock()); err != nil {
		return time.Time{}, s.wrap(err, "clock of the server")
	}
	server := time.UnixMicro(us)
	s.clock.Measured(begun, node, server)
	s.notePause(ctx)
	return server, nil
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

// watchServer regularly asks the server for its time, and whether a newer program
// has changed the schema. It ignores errors.
func (s *Store) watchServer(ctx context.Context) {
	if s.engine.Alone() {
		return
	}
	looks := 0
	work.Every(ctx, clockEvery, func(ctx context.Context) {
		_, _ = s.serverClock(ctx, s.read)
		if looks%schemaLooks == 0 {
			s.lookAtSchema(ctx)
		}
		looks++
	})
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

const (
	// guardJump is by how much the wall clock may move beyond the monotonic one
	// before deletions wait.
	guardJump = time.Hour
	// guardGap is how long before a start the last round of deletions may have been
	// before they wait, and for how long they wait.
	guardGap = 24 * time.Hour
	// guardWait is for how long they wait, unless an operator confirms the clock.
	guardWait = 24 * time.Hour
	// guardNote is how often the time of the last round is written.
	guardNote = time.Minute
)

// clockGuard makes deletions wait when the clock of a machine on SQLite, which
// nothing can be compared with, may be wrong: it has jumped, or the last
// deletion was long ago.
type clockGuard struct {
	off bool // a test moves the clock
	// mono is the time since some moment, by the monotonic clock.
	mono func() time.Duration

	mu      sync.Mutex
	wall    time.Time // of the last look
	since   time.Duration
	written time.Time
	said    time.Time // held until then, as was logged
}

// clockGuardRow is the row of the guard.
type clockGuardRow struct {
	LastRound *Time `db:"last_round_at"`
	HeldUntil *Time `db:"held_until"`
}

func newMono() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// pass reports whether something may be deleted now.
func (g *clockGuard) pass(ctx context.Context, s *Store, now time.Time) (bool, error) {
	if g.off || !s.engine.Alone() {
		return true, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	row, err := s.readGuard(ctx)
	if err != nil {
		return false, err
	}
	held := row.HeldUntil
	since := g.mono()
	first := g.wall.IsZero()
	jumped := !first && (now.Round(0).Sub(g.wall)-(since-g.since)).Abs() > guardJump
	late := first && row.LastRound != nil && now.Sub(row.LastRound.Time).Abs() > guardGap
	g.wall, g.since = now.Round(0), since
	switch {
	case jumped || late:
		until := NewTime(now.Add(guardWait))
		held = &until
	case held != nil && held.Sub(now) > guardWait: // the clock has gone back since
		until := NewTime(now.Add(guardWait))
		held = &until
	case held != nil && !held.After(now):
		held = nil
	}
	changed := (held == nil) != (row.HeldUntil == nil) || held != nil && !held.Equal(row.HeldUntil.Time)
	if changed || now.Sub(g.written).Abs() >= guardNote {
		if err := s.writeGuard(ctx, clockGuardRow{ptrTo(NewTime(now)), held}); err != nil {
			return false, err
		}
		g.written = now
	}
	if held != nil && !held.Equal(g.said) {
		s.log.ErrorContext(ctx, "the clock may be wrong: nothing is deleted before it is confirmed",
			"until", held.UTC().Format(time.RFC3339), "confirm", "postroom maintenance confirm")
		g.said = held.Time
	}
	return held == nil, nil
}

func ptrTo[T any](v T) *T { return &v }

const guardSettings = `SELECT last_round_at, held_until FROM maintenance WHERE one = 1`

func (s *Store) readGuard(ctx context.Context) (clockGuardRow, error) {
	var row clockGuardRow
	err := s.read.GetContext(ctx, &row, guardSettings)
	if errors.Is(err, sql.ErrNoRows) {
		return clockGuardRow{}, nil
	}
	return row, s.wrap(err, "time of the last round")
}

func (s *Store) writeGuard(ctx context.Context, row clockGuardRow) error {
	const q = `INSERT INTO maintenance (one, last_round_at, held_until) VALUES (1, $1, $2)
		ON CONFLICT (one) DO UPDATE SET last_round_at = excluded.last_round_at, held_until = excluded.held_until`
	_, err := s.exec(ctx, "note the time of the round", q, row.LastRound, row.HeldUntil)
	return err
}

// DeletionsPaused returns until when nothing is deleted because the clock may be
// wrong; nil when deletions go on.
func (s *Store) DeletionsPaused(ctx context.Context) (*Time, error) {
	if !s.engine.Alone() {
		return nil, nil //nolint:nilnil // nothing is held
	}
	row, err := s.readGuard(ctx)
	if err != nil || row.HeldUntil == nil || !row.HeldUntil.After(s.now()) {
		return nil, err
	}
	return row.HeldUntil, nil
}

// ConfirmClock confirms that the clock is right, so that due deletions may run.
// It returns whether deletions were held back.
func (s *Store) ConfirmClock(ctx context.Context) (bool, error) {
	held, err := s.DeletionsPaused(ctx)
	if err != nil {
		return false, err
	}
	return held != nil, s.writeGuard(ctx, clockGuardRow{LastRound: ptrTo(NewTime(s.now()))})
}
