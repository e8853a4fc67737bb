package maintenance

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/postroom/postroom/store"
)

// SweepEvery is the default interval between rounds of a Sweeper.
const SweepEvery = time.Hour

// SweeperConfig configures a Sweeper.
type SweeperConfig struct {
	Store *store.Store
	// Every is the interval between rounds; 0 means SweepEvery.
	Every time.Duration
	// Log receives what a round removed, and errors.
	Log *slog.Logger
}

// Sweeper removes leftover data: blobs without a message, which a crash can
// leave, old cached responses of idempotent requests, events, webhook
// deliveries, daily counts and the journal, expired mail policies of other
// domains, unread notes of the dashboard, ended connections of applications, empty
// parts of the full-text index, and the words in it that occur only in deleted mail.
type Sweeper struct{ cfg SweeperConfig }

// NewSweeper returns a Sweeper. Call Run to start it.
func NewSweeper(cfg SweeperConfig) *Sweeper {
	if cfg.Every == 0 {
		cfg.Every = SweepEvery
	}
	return &Sweeper{cfg}
}

// Run runs a round at once and then every SweeperConfig.Every until ctx ends.
// It continues after a failed round.
func (s *Sweeper) Run(ctx context.Context) error {
	return runEvery(ctx, s.cfg.Store, s.cfg.Every, s.cfg.Log, "sweep", func(ctx context.Context) error {
		_, err := s.RunOnce(ctx)
		return err
	})
}

// RunOnce runs one round and returns the number of removed items. An error with
// one kind of data does not stop the others.
func (s *Sweeper) RunOnce(ctx context.Context) (int, error) {
	st := s.cfg.Store
	all := 0
	var errs []error
	var removed []any // names and counts, for the log
	note := func(name string, n int, err error) {
		all += n
		errs = append(errs, err)
		removed = append(removed, name, n)
	}
	blobs, err := st.SweepBlobs(ctx)
	note("blobs", blobs, err)
	for _, name := range store.Sweeps() {
		n, err := repeat(ctx, sweep(st, name))
		note(name, n, err)
	}
	errs = append(errs, st.RewriteIndex(ctx))
	if _, err := repeat(ctx, st.MergeIndex); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, st.Scrub(ctx))
	if all > 0 {
		s.cfg.Log.InfoContext(ctx, "swept", removed...)
	}
	return all, errors.Join(errs...)
}

// sweep returns a function that does one step of a sweep.
func sweep(s *store.Store, name string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return s.Sweep(ctx, name) }
}
