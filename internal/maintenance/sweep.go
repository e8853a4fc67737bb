package maintenance

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/postroom/postroom/store"
)

// SweepEvery is the usual time between two rounds of a sweeper.
const SweepEvery = time.Hour

// SweeperConfig is what a Sweeper needs.
type SweeperConfig struct {
	Store *store.Store
	// Every is the time between two rounds; 0 means SweepEvery.
	Every time.Duration
	// Log takes what a round removed, and why one failed.
	Log *slog.Logger
}

// Sweeper removes large raw mail that no message names, as a crash between
// writing the mail and its row leaves it, stored answers of idempotent calls
// that are too old to be given again, old events and webhook deliveries, counts
// of days that are no longer shown, mail policies of other domains that hold no
// longer, notes of the dashboard that were not read in time, empty parts of the
// full-text index, and from it the words that only deleted mail had.
type Sweeper struct{ cfg SweeperConfig }

// NewSweeper returns a sweeper that has yet to run.
func NewSweeper(cfg SweeperConfig) *Sweeper {
	if cfg.Every == 0 {
		cfg.Every = SweepEvery
	}
	return &Sweeper{cfg}
}

// Run does a round at once and then one every SweeperConfig.Every, until ctx
// ends. A round that fails does not end it.
func (s *Sweeper) Run(ctx context.Context) error {
	return runEvery(ctx, s.cfg.Store, s.cfg.Every, s.cfg.Log, "sweep", func(ctx context.Context) error {
		_, err := s.RunOnce(ctx)
		return err
	})
}

// RunOnce does one round and returns how many things it removed. One kind of
// thing that cannot be swept does not keep the others from it.
func (s *Sweeper) RunOnce(ctx context.Context) (int, error) {
	st := s.cfg.Store
	all := 0
	var errs []error
	var removed []any // names and numbers, for the log
	for _, kind := range []struct {
		name  string
		sweep func(context.Context) (int, error)
	}{
		{"blobs", st.SweepBlobs},
		{"answers", inSteps(st.SweepCachedResponses)},
		{"events", inSteps(st.SweepEvents)},
		{"webhook_deliveries", inSteps(st.SweepDeliveries)},
		{"deleted_messages", inSteps(st.SweepDeleted)},
		{"counts", inSteps(st.SweepCounts)},
		{"mail_policies", inSteps(st.SweepMailPolicies)},
		{"notes", inSteps(st.SweepNotes)},
		{"index_buckets", st.SweepIndex},
	} {
		n, err := kind.sweep(ctx)
		all += n
		errs = append(errs, err)
		removed = append(removed, kind.name, n)
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

// inSteps repeats a step to its end.
func inSteps(step func(context.Context) (int, error)) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) { return repeat(ctx, step) }
}
