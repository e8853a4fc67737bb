package domains

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/postroom/postroom/store"
)

const (
	// RoundEvery is the time between two looks for domains that are due.
	RoundEvery = time.Minute
	// roundSize is how many domains are looked up side by side.
	roundSize = 16
)

// Run looks up the domains that are due, and new keys of the install's own, at
// once and then every RoundEvery, until ctx ends. A round that fails is logged and
// done again with the next.
func (s *Domains) Run(ctx context.Context) error {
	t := time.NewTicker(RoundEvery)
	defer t.Stop()
	for {
		if err := s.CheckInstall(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "the keys of the mail domain were not looked up", "error", err)
		}
		for {
			n, err := s.RunOnce(ctx)
			if err != nil && ctx.Err() == nil {
				s.cfg.Log.WarnContext(ctx, "domains were not looked up", "error", err)
			}
			if n < roundSize || err != nil || ctx.Err() != nil {
				break
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
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
