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

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

// runEvery runs rounds of a task at an interval, the first one at once, until ctx
// ends. The nodes of an installation take turns: one of them runs each round. A
// round that fails is logged.
func runEvery(
	ctx context.Context, s *store.Store, every time.Duration, log *slog.Logger, task string, round func(context.Context) error,
) error {
	work.Every(ctx, every/10, func(ctx context.Context) {
		mine, err := s.TakeTurn(ctx, task, every-every/20)
		if mine {
			err = round(ctx)
		}
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "a round of maintenance failed", "work", task, "error", err)
		}
	})
	return nil
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
		if !work.Pause(ctx, min(leisure*time.Since(began), maxLeisure), nil) {
			return all, ctx.Err()
		}
	}
}
