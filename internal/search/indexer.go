package search

import (
	"context"
	"log/slog"
	"time"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// batch is how many messages are indexed in one transaction. While one is
	// written to SQLite, mail waits: some 20 ms.
	batch = 64
	// lookEvery is how often an indexer that has nothing to do looks for more.
	lookEvery = 250 * time.Millisecond
	// busyRate is from how many messages a second on, stored by this node, mail
	// comes first: the indexer then rests busyRest times as long as it works.
	// What is not indexed meanwhile is found nevertheless, at a higher cost.
	busyRate = 200
	busyRest = 12
)

// IndexerConfig is what an Indexer needs.
type IndexerConfig struct {
	Store *store.Store
	// Now is the clock.
	Now func() time.Time
	// Log takes why a round failed.
	Log *slog.Logger
}

// Indexer fills the full-text index. Every node runs one, and one at a time
// works.
type Indexer struct{ cfg IndexerConfig }

// NewIndexer returns an indexer that has yet to run.
func NewIndexer(cfg IndexerConfig) *Indexer {
	return &Indexer{cfg}
}

// Run indexes mail soon after it comes, until ctx ends. A round that fails does
// not end it.
func (x *Indexer) Run(ctx context.Context) error {
	stored, since := x.cfg.Store.Stored(), x.cfg.Now()
	work.Due(ctx, func(ctx context.Context) time.Duration {
		start := x.cfg.Now()
		n, err := x.RunOnce(ctx)
		if err != nil && ctx.Err() == nil {
			x.cfg.Log.WarnContext(ctx, "indexing failed", "error", err)
		}
		now, nowStored := x.cfg.Now(), x.cfg.Store.Stored()
		rate := float64(nowStored-stored) / max(now.Sub(since), time.Millisecond).Seconds()
		stored, since = nowStored, now
		return rest(n, now.Sub(start), rate)
	}, nil, nil)
	return nil
}

// rest is how long to wait after a round that indexed n messages, when mail
// comes at rate.
func rest(n int, took time.Duration, rate float64) time.Duration {
	switch {
	case n < batch: // that was all, or it failed
		return lookEvery
	case rate > busyRate:
		return max(busyRest*took, time.Millisecond)
	}
	return 0
}

// RunOnce indexes one batch, merges a little of the index, and returns how many
// messages were in the batch: none when all are indexed, or when another node
// does it.
func (x *Indexer) RunOnce(ctx context.Context) (int, error) {
	n, err := x.cfg.Store.Index(ctx, batch, Text)
	if err != nil {
		return 0, err
	}
	_, err = x.cfg.Store.MergeIndexSome(ctx)
	return n, err
}
