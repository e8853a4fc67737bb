// Package maintenance does what no request asks for: it removes what the
// service leaves behind.
//
// Nothing here is needed for correctness at the moment it runs. A round that
// fails is logged and done again with the next; a round that every node does at
// the same time does the same as one.
package maintenance

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/postroom/postroom/store"
)

// DefaultEvery is the time between two rounds of a sweeper.
const DefaultEvery = time.Hour

// Config is what a Sweeper needs.
type Config struct {
	Store *store.Store
	// Every is the time between two rounds; 0 means DefaultEvery.
	Every time.Duration
	// Log takes what a round removed, and why one failed.
	Log *slog.Logger
}

// Sweeper removes large raw mail that no message names, as a crash between
// writing the mail and its row leaves it, and stored answers of idempotent
// calls that are too old to be given again.
type Sweeper struct{ cfg Config }

// NewSweeper returns a sweeper that has yet to run.
func NewSweeper(cfg Config) *Sweeper {
	if cfg.Every == 0 {
		cfg.Every = DefaultEvery
	}
	return &Sweeper{cfg}
}

// Run does a round at once and then one every Config.Every, until ctx ends. A
// round that fails does not end it.
func (s *Sweeper) Run(ctx context.Context) error {
	t := time.NewTicker(s.cfg.Every)
	defer t.Stop()
	for {
		if _, err := s.RunOnce(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "sweeping failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// RunOnce does one round and returns how many things it removed. One kind of
// thing that cannot be swept does not keep the others from it.
func (s *Sweeper) RunOnce(ctx context.Context) (int, error) {
	blobs, blobsErr := s.cfg.Store.SweepBlobs(ctx)
	answers, answersErr := s.cfg.Store.SweepAnswers(ctx)
	if blobs > 0 || answers > 0 {
		s.cfg.Log.InfoContext(ctx, "swept", "blobs", blobs, "answers", answers)
	}
	return blobs + int(answers), errors.Join(blobsErr, answersErr)
}
