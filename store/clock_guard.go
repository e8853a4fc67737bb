package store

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

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

// heldDeletions is the row of the guard.
type heldDeletions struct {
	LastRound *Time `db:"last_round_at"`
	HeldUntil *Time `db:"held_until"`
}

func newMono() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// pass says whether something may be deleted now.
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
		if err := s.writeGuard(ctx, heldDeletions{ptrTo(NewTime(now)), held}); err != nil {
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

func (s *Store) readGuard(ctx context.Context) (heldDeletions, error) {
	var row heldDeletions
	err := s.read.GetContext(ctx, &row, guardSettings)
	if errors.Is(err, sql.ErrNoRows) {
		return heldDeletions{}, nil
	}
	return row, s.wrap(err, "time of the last round")
}

func (s *Store) writeGuard(ctx context.Context, row heldDeletions) error {
	const q = `INSERT INTO maintenance (one, last_round_at, held_until) VALUES (1, $1, $2)
		ON CONFLICT (one) DO UPDATE SET last_round_at = excluded.last_round_at, held_until = excluded.held_until`
	return s.inTx(ctx, "note the time of the round", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, q, row.LastRound, row.HeldUntil)
		return err
	})
}

// DeletionsHeld returns until when nothing is deleted because the clock may be
// wrong; nil when deletions go on.
func (s *Store) DeletionsHeld(ctx context.Context) (*Time, error) {
	if !s.engine.Alone() {
		return nil, nil //nolint:nilnil // nothing is held
	}
	row, err := s.readGuard(ctx)
	if err != nil || row.HeldUntil == nil || !row.HeldUntil.After(s.now()) {
		return nil, err
	}
	return row.HeldUntil, nil
}

// ConfirmClock says that the clock is right: what is due may be deleted. It
// returns whether deletions were held.
func (s *Store) ConfirmClock(ctx context.Context) (bool, error) {
	held, err := s.DeletionsHeld(ctx)
	if err != nil {
		return false, err
	}
	return held != nil, s.writeGuard(ctx, heldDeletions{LastRound: ptrTo(NewTime(s.now()))})
}
