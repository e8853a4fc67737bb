package search

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func newIndexer(s *store.Store, now func() time.Time) *Indexer {
	return NewIndexer(IndexerConfig{Store: s, Now: now, Log: slog.New(slog.DiscardHandler)})
}

// A round takes a batch at most, the next one the rest, and none finds nothing
// to do.
func TestRunOnceIndexesInBatches(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		const messages = batch + 6
		for range messages {
			storetest.Received(t, s, in)
		}
		x := newIndexer(s, time.Now)
		for _, want := range []int{batch, 6, 0} {
			if n, err := x.RunOnce(t.Context()); n != want || err != nil {
				t.Fatalf("indexed %d, %v, want %d", n, err, want)
			}
		}
	})
}

// Run indexes what comes while it runs, and at its end lets another node index
// at once.
func TestRunIndexesAndReleasesItsLease(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		in := storetest.Inbox(t, s)
		storetest.Received(t, s, in)
		asked := make(chan struct{}, 100)
		x := newIndexer(s, func() time.Time {
			select {
			case asked <- struct{}{}:
			default:
			}
			return time.Now()
		})
		go func() { ended <- x.Run(ctx) }()
		for range 3 { // when Run begins, and when a round begins and ends
			<-asked
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		storetest.Received(t, s, in)
		if n, err := newIndexer(s, time.Now).RunOnce(t.Context()); n != 1 || err != nil {
			t.Errorf("another indexer indexed %d, %v, want 1", n, err)
		}
	})
}
