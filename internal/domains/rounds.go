package domains

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// RoundEvery is the time between two looks for domains that are due.
	RoundEvery = time.Minute
	// roundSize is how many domains are looked up side by side.
	roundSize = 16
)

// Run checks the domains that are due, and new keys of the mail domain, at once
// and then every RoundEvery, until ctx ends. It logs a round that fails; the next
// round repeats the work.
func (s *Domains) Run(ctx context.Context) error {
	work.Every(ctx, RoundEvery, s.round)
	return nil
}

func (s *Domains) round(ctx context.Context) {
	if err := s.CheckInstall(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.WarnContext(ctx, "the keys of the mail domain were not looked up", "error", err)
	}
	for ctx.Err() == nil {
		n, err := s.RunOnce(ctx)
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "domains were not looked up", "error", err)
		}
		if n < roundSize || err != nil {
			return
		}
	}
}

// RunOnce looks up some of the domains that are due and returns how many. One
// that fails is due again in an hour and keeps none of the others from their turn.
func (s *Domains) RunOnce(ctx context.Context) (int, error) {
	due, err := s.cfg.Store.ClaimDomains(ctx, roundSize)
	if err != nil {
		return 0, err
	}
	errs := make([]error, len(due))
	var wg sync.WaitGroup
	for i, d := range due {
		wg.Go(func() {
			_, err := s.Check(ctx, d, false)
			if !errors.Is(err, store.ErrNotFound) {
				errs[i] = err
			}
		})
	}
	wg.Wait()
	return len(due), errors.Join(errs...)
}
