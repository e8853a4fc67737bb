// Package maintenance runs background tasks: it deletes mail past its retention,
// removes leftover data, and counts events by day.
//
// Mail traffic has priority: tasks use transactions of a few milliseconds and
// pause longer than each one took. A failed step is logged and repeated in the
// next round. Nodes take turns and skip rows that another node has locked.
package maintenance

import (
	"context"
	"log/slog"
	"time"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

// runEvery runs rounds of a task at an interval, the first one at once, until
// ctx ends. One node of an installation runs each round. A failed round is
// logged.
func runEvery(
	ctx context.Context, s *store.Store, every time.Duration, log *slog.Logger, task string, round func(context.Context) error,
) error {
	look := every / 10
	if s.Engine() == "sqlite" { // one node alone: it takes every turn
		look = every
	}
	work.Every(ctx, look, func(ctx context.Context) {
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
	// leisure is the length of the pause after a step, as a multiple of its
	// duration.
	leisure = 3
	// maxLeisure is the maximum length of the pause.
	maxLeisure = time.Second
)

// repeat runs a step until it finds nothing to do, and returns the total count.
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
