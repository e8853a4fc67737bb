// Package maintenance does what no request asks for: it deletes mail that is
// past its retention, and removes what the service leaves behind.
//
// It gives way to mail: what it does is cut into transactions of a few
// milliseconds, and after each it leaves the database alone for longer than
// that took. A step that fails is logged and done again with the next round.
// Nodes take turns, and skip what another node has locked.
package maintenance

import (
	"context"
	"log/slog"
	"time"

	"github.com/postroom/postroom/store"
)

// runEvery does a round of work every so often, the first one at once, until ctx
// ends. The nodes of an installation take turns: each round is done by one of
// them. A round that fails does not end it: what was to be done then is logged.
func runEvery(
	ctx context.Context, s *store.Store, every time.Duration, log *slog.Logger, work string, round func(context.Context) error,
) error {
	t := time.NewTicker(max(every/10, time.Millisecond))
	defer t.Stop()
	for {
		mine, err := s.TakeTurn(ctx, work, every-every/20)
		if mine {
			err = round(ctx)
		}
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "a round of maintenance failed", "work", work, "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

const (
	// leisure is for how many times as long as a step took the database is left
	// alone after it.
	leisure = 3
	// maxLeisure bounds that.
	maxLeisure = time.Second
)

// repeat does a step again and again until it finds nothing to do, and returns
// how many things all of them did.
func repeat(ctx context.Context, step func(context.Context) (int, error)) (int, error) {
	all := 0
	for {
		began := time.Now()
		n, err := step(ctx)
		all += n
		if n == 0 || err != nil {
			return all, err
		}
		pause := time.NewTimer(min(leisure*time.Since(began), maxLeisure))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return all, ctx.Err()
		}
	}
}
