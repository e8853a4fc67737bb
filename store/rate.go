package store

import (
	"context"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/work"
)

// RateKind is the kind of a rate limit.
type RateKind string

// The rate limits count calls of a key, sending calls of a key, calls of an address
// without a valid key, and sign-in attempts: by network, and by network and name.
const (
	RateCalls   RateKind = "key"
	RateSends   RateKind = "send"
	RateAddress RateKind = "ip"
	RateSignIn  RateKind = "sign-in"
	RateName    RateKind = "name"
)

// anybodys says that whoever calls chooses under what they are counted.
func (k RateKind) anybodys() bool { return k != RateCalls && k != RateSends }

// Rate is a window after a call.
type Rate struct {
	// Left is the number of remaining calls in the window.
	Left int
	// Ends is the end of the window, when the count starts again.
	Ends time.Time
	// Refused means that this call must not pass. It was not counted.
	Refused bool
}

// TakeRate counts a call by who against limit. The count is exact across all
// nodes.
func (s *Store) TakeRate(ctx context.Context, kind RateKind, who string, limit int) (Rate, error) {
	n, ends, err := s.rates.take(ctx, kind, who, limit, s.now())
	return Rate{Left: max(0, limit-n), Ends: ends, Refused: n > limit}, s.wrap(err, "rate limit")
}

// rateCounter counts calls in windows. take returns which call of its window
// this is, or a number over limit when it does not count any more.
type rateCounter interface {
	take(ctx context.Context, kind RateKind, who string, limit int, now time.Time) (n int, ends time.Time, err error)
	// sweep forgets windows that have ended.
	sweep(ctx context.Context, now time.Time) error
	close() error
}

// openRates chooses the counter: one process can count in memory.
func (s *Store) openRates(ctx context.Context) error {
	if s.engine.Alone() {
		s.rates = &memoryRates{}
		return nil
	}
	st, err := s.read.PreparexContext(ctx, countRate)
	if err != nil {
		return s.wrap(err, "open")
	}
	s.rates = &tableRates{db: s.read, count: st}
	return nil
}

// sweepRates forgets windows until ctx ends.
func (s *Store) sweepRates(ctx context.Context) {
	work.Every(ctx, RateWindow, func(ctx context.Context) {
		if err := s.rates.sweep(ctx, s.now()); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "rate limits not swept", "error", err)
		}
	})
}

// memoryRates counts for the one process that there is.
type memoryRates struct {
	mu    sync.Mutex
	kinds map[RateKind]map[string]*rateWindow
}

type rateWindow struct {
	ends time.Time
	n    int
}

// contains reports whether a call at now falls into the window. The clock may go
// back.
func (w *rateWindow) contains(now time.Time) bool {
	return now.Before(w.ends) && w.ends.Sub(now) <= RateWindow
}

func (m *memoryRates) take(_ context.Context, kind RateKind, who string, limit int, now time.Time) (int, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := m.window(kind, who)
	if !w.contains(now) {
		*w = rateWindow{ends: now.Add(RateWindow)}
	}
	w.n = min(w.n, limit) + 1
	return w.n, w.ends, nil
}

func (m *memoryRates) window(kind RateKind, who string) *rateWindow {
	windows := m.kinds[kind]
	if windows == nil {
		if m.kinds == nil {
			m.kinds = map[RateKind]map[string]*rateWindow{}
		}
		windows = map[string]*rateWindow{}
		m.kinds[kind] = windows
	}
	w := windows[who]
	if w == nil && kind.anybodys() && len(windows) >= maxAddresses {
		who = "others"
		w = windows[who]
	}
	if w == nil {
		w = &rateWindow{}
		windows[who] = w
	}
	return w
}

func (m *memoryRates) sweep(_ context.Context, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, windows := range m.kinds {
		for who, w := range windows {
			if !w.contains(now) {
				delete(windows, who)
			}
		}
	}
	return nil
}

func (*memoryRates) close() error { return nil }

// countRate counts a call $1 at the time $2, in a window of $3, against the
// limit $4, which is not counted past. The nodes' clocks may differ by as much
// as a window; a window that ends later than that is of a clock that was wrong.
const countRate = `
	INSERT INTO rate_limits AS r (who, n, ends_at)
	VALUES ($1, 1, cast($2 AS bigint) + cast($3 AS bigint))
	ON CONFLICT (who) DO UPDATE
	   SET n = CASE WHEN r.ends_at > $2 AND r.ends_at <= excluded.ends_at + $3 THEN least(r.n, cast($4 AS bigint)) + 1 ELSE 1 END,
	       ends_at = CASE WHEN r.ends_at > $2 AND r.ends_at <= excluded.ends_at + $3 THEN r.ends_at ELSE excluded.ends_at END
	RETURNING n, ends_at`

// tableRates counts for all nodes, in a table that no commit waits for the disk
// for: after a crash of the server every window starts again. It does not use the
// connections of the writers, whom a storm of calls must not keep waiting.
type tableRates struct {
	db    *sqlx.DB
	count *sqlx.Stmt
}

func (t *tableRates) take(ctx context.Context, kind RateKind, who string, limit int, now time.Time) (int, time.Time, error) {
	var n int
	var ends Time
	err := t.count.QueryRowxContext(ctx, string(kind)+"/"+who, now.UnixMicro(), RateWindow.Microseconds(), limit).Scan(&n, &ends)
	return n, ends.Time, err
}

func (t *tableRates) sweep(ctx context.Context, now time.Time) error {
	const q = `DELETE FROM rate_limits WHERE ends_at <= $1`
	_, err := t.db.ExecContext(ctx, q, now.Add(-RateWindow).UnixMicro())
	return err
}

func (t *tableRates) close() error { return t.count.Close() }
