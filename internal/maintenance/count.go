package maintenance

import (
	"context"
	"log/slog"
	"time"

	"github.com/postroom/postroom/store"
)

// countEvery is the interval between rounds of a Counter. Whoever reads counts
// adds the events that came since the last round.
const countEvery = 10 * time.Second

// Counter adds the events of the log to the daily counts that statistics show.
type Counter struct {
	store *store.Store
	log   *slog.Logger
}

// NewCounter returns a Counter. Call Run to start it.
func NewCounter(s *store.Store, log *slog.Logger) *Counter { return &Counter{s, log} }

// Run runs a round at once and then every 10 seconds until ctx ends. It continues
// after a failed round.
func (c *Counter) Run(ctx context.Context) error {
	return runEvery(ctx, c.store, countEvery, c.log, "count events", func(ctx context.Context) error {
		_, err := repeat(ctx, c.store.CountEvents)
		return err
	})
}
