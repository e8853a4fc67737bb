package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var errBadItem = errors.New("bad item")

// memoryWork commits numbers to a slice; a negative one cannot be written.
type memoryWork struct {
	mu      sync.Mutex
	written []int
	batches []int // their sizes
}

func (w *memoryWork) write(_ context.Context, items []int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.batches = append(w.batches, len(items))
	if slices.Min(items) < 0 {
		return errBadItem
	}
	w.written = append(w.written, items...)
	return nil
}

func anyItem(error) bool { return true }

func alike(int) int { return 1 }

// Heavy items fill a batch sooner: what waits is written in several.
func TestCommitterWeighsItems(t *testing.T) {
	t.Parallel()
	const each = 100 // so that the third one is the last of a batch
	w := &memoryWork{}
	c := &committer[int]{work: w.write, alone: anyItem, weigh: func(int) int { return each }, queue: make(chan pending[int], 8)}
	for n := range 8 {
		c.queue <- pending[int]{item: n, done: make(chan error, 1)}
	}
	c.close()
	c.run()
	if want := []int{3, 3, 2}; !slices.Equal(w.batches, want) {
		t.Errorf("batches of %v items, want %v", w.batches, want)
	}
}

func TestCommitterWritesAllThatWaitsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running sync.WaitGroup
		w := &memoryWork{}
		first, hold := make(chan struct{}), make(chan struct{})
		c := newCommitter(&running, func(ctx context.Context, items []int) error {
			if items[0] == 0 {
				close(first)
				<-hold
			}
			return w.write(ctx, items)
		}, anyItem, alike)
		var callers sync.WaitGroup
		callers.Go(func() { _ = c.do(t.Context(), 0) })
		<-first
		for n := 1; n <= 2*maxBatch; n++ {
			callers.Go(func() { _ = c.do(t.Context(), n) })
		}
		synctest.Wait() // all callers are queued, or at the door of the queue
		close(hold)
		callers.Wait()
		c.close()
		running.Wait()

		if len(w.written) != 2*maxBatch+1 {
			t.Errorf("%d items were written, want %d", len(w.written), 2*maxBatch+1)
		}
		if got := w.batches[:2]; !slices.Equal(got, []int{1, maxBatch}) {
			t.Errorf("the first batches held %v items, want 1 and then %d", got, maxBatch)
		}
	})
}

func TestCommitterLetsABadItemFailAlone(t *testing.T) {
	t.Parallel()
	w := &memoryWork{}
	var running sync.WaitGroup
	c := newCommitter(&running, w.write, anyItem, alike)
	defer running.Wait()
	defer c.close()

	errs := c.commit([]int{1, -2, 3})
	want := []error{nil, errBadItem, nil}
	for i := range want {
		if !errors.Is(errs[i], want[i]) || (errs[i] == nil) != (want[i] == nil) {
			t.Errorf("item %d: got %v, want %v", i, errs[i], want[i])
		}
	}
	if !slices.Equal(w.written, []int{1, 3}) {
		t.Errorf("written: %v, want 1 and 3", w.written)
	}
}

func TestCommitterDoesNotTryOneByOneWhenNoItemIsAtFault(t *testing.T) {
	t.Parallel()
	w := &memoryWork{}
	var running sync.WaitGroup
	c := newCommitter(&running, w.write, func(error) bool { return false }, alike)
	defer running.Wait()
	defer c.close()

	for i, err := range c.commit([]int{1, -2, 3}) {
		if !errors.Is(err, errBadItem) {
			t.Errorf("item %d: got %v, want the batch's error", i, err)
		}
	}
	if len(w.batches) != 1 {
		t.Errorf("wrote %d times, want once", len(w.batches))
	}
}

// An error means "not written" and nil "written", also for who is in flight
// when the store closes or gives up waiting.
func TestCommitterTellsTheTruthWhenClosedInFlight(t *testing.T) {
	t.Parallel()
	for range 100 {
		w := &memoryWork{}
		var running, callers sync.WaitGroup
		c := newCommitter(&running, w.write, anyItem, alike)
		var mu sync.Mutex
		said := map[int]error{}
		for n := range 64 {
			callers.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 0 {
					cancel()
				}
				defer cancel()
				err := c.do(ctx, n)
				mu.Lock()
				defer mu.Unlock()
				said[n] = err
			})
		}
		c.close()
		callers.Wait()
		running.Wait()
		for n, err := range said {
			if written := slices.Contains(w.written, n); written != (err == nil) {
				t.Fatalf("item %d: written is %v, but the caller was told %v", n, written, err)
			}
			if err != nil && !errors.Is(err, ErrUnavailable) && !errors.Is(err, context.Canceled) {
				t.Fatalf("item %d: got %v, want ErrUnavailable or the context's error", n, err)
			}
		}
	}
}

func TestCommitterStopsWaitingForAPlaceWhenTheCallerGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, callers sync.WaitGroup
		hold := make(chan struct{})
		c := newCommitter(&running, func(context.Context, []int) error { <-hold; return nil }, anyItem, alike)
		for n := range maxBatch + 1 { // one is being written, the queue is full
			callers.Go(func() { _ = c.do(t.Context(), n) })
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.do(ctx, -1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		close(hold)
		callers.Wait()
		c.close()
		running.Wait()
	})
}
