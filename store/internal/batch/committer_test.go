package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postroom/postroom/store/internal/engine"
)

var errBadItem = errors.New("bad item")

// memoryWork commits numbers to a slice; a negative one cannot be written.
type memoryWork struct {
	mu      sync.Mutex
	written []int
	batches []int // their sizes
}

func (w *memoryWork) write(_ context.Context, items []int, _ bool) ([]error, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.batches = append(w.batches, len(items))
	if slices.Min(items) < 0 {
		return nil, errBadItem
	}
	w.written = append(w.written, items...)
	return nil, nil
}

func anyItem(error) bool { return true }

func alike(int) int { return 1 }

// Heavy items fill a batch sooner: what waits is written in several.
func TestCommitterWeighsItems(t *testing.T) {
	t.Parallel()
	const each = 100 // so that the third one is the last of a batch
	w := &memoryWork{}
	c := &Committer[int]{
		Config: Config[int]{Work: w.write, Alone: anyItem, Weigh: func(int) int { return each }}, queue: make(chan *pending[int], 8),
	}
	for n := range 8 {
		c.queue <- newPending(n)
	}
	c.Close()
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
		c := NewCommitter(&running, Config[int]{Alone: anyItem, Weigh: alike, Work: func(ctx context.Context, items []int, again bool) ([]error, error) {
			if items[0] == 0 {
				close(first)
				<-hold
			}
			return w.write(ctx, items, again)
		}})
		var callers sync.WaitGroup
		callers.Go(func() { _ = c.Do(t.Context(), 0) })
		<-first
		for n := 1; n <= 2*MaxItems; n++ {
			callers.Go(func() { _ = c.Do(t.Context(), n) })
		}
		synctest.Wait() // all callers are queued, or at the door of the queue
		close(hold)
		callers.Wait()
		c.Close()
		running.Wait()

		if len(w.written) != 2*MaxItems+1 {
			t.Errorf("%d items were written, want %d", len(w.written), 2*MaxItems+1)
		}
		if got := w.batches[:2]; !slices.Equal(got, []int{1, MaxItems}) {
			t.Errorf("the first batches held %v items, want 1 and then %d", got, MaxItems)
		}
	})
}

func TestCommitterFailsOnlyTheBadItem(t *testing.T) {
	t.Parallel()
	w := &memoryWork{}
	var running sync.WaitGroup
	c := NewCommitter(&running, Config[int]{Work: w.write, Alone: anyItem, Weigh: alike})
	defer running.Wait()
	defer c.Close()

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
	c := NewCommitter(&running, Config[int]{Work: w.write, Alone: func(error) bool { return false }, Weigh: alike})
	defer running.Wait()
	defer c.Close()

	for i, err := range c.commit([]int{1, -2, 3}) {
		if !errors.Is(err, errBadItem) {
			t.Errorf("item %d: got %v, want the batch's error", i, err)
		}
	}
	if len(w.batches) != 1 {
		t.Errorf("wrote %d times, want once", len(w.batches))
	}
}

// An error means "not written" and nil "written", also for calls in progress when
// the store closes or stops waiting.
func TestCommitterResultIsTrueWhenClosedInFlight(t *testing.T) {
	t.Parallel()
	for range 100 {
		w := &memoryWork{}
		var running, callers sync.WaitGroup
		c := NewCommitter(&running, Config[int]{Work: w.write, Alone: anyItem, Weigh: alike})
		var mu sync.Mutex
		said := map[int]error{}
		for n := range 64 {
			callers.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				if n%3 == 0 {
					cancel()
				}
				defer cancel()
				err := c.Do(ctx, n)
				mu.Lock()
				defer mu.Unlock()
				said[n] = err
			})
		}
		c.Close()
		callers.Wait()
		running.Wait()
		for n, err := range said {
			if written := slices.Contains(w.written, n); written != (err == nil) {
				t.Fatalf("item %d: written is %v, but the caller got %v", n, written, err)
			}
			if err != nil && !errors.Is(err, engine.ErrUnavailable) && !errors.Is(err, context.Canceled) {
				t.Fatalf("item %d: got %v, want engine.ErrUnavailable or the context's error", n, err)
			}
		}
	}
}

func TestCommitterStopsWaitingWhenTheCallerCancels(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, callers sync.WaitGroup
		hold := make(chan struct{})
		c := NewCommitter(&running, Config[int]{Alone: anyItem, Weigh: alike, Work: func(context.Context, []int, bool) ([]error, error) { <-hold; return nil, nil }})
		for n := range MaxItems + 1 { // one is being written, the queue is full
			callers.Go(func() { _ = c.Do(t.Context(), n) })
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Do(ctx, -1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error", err)
		}
		close(hold)
		callers.Wait()
		c.Close()
		running.Wait()
	})
}

// errNamed is the error of -1, which the work can name; it cannot name any other.
var errNamed = errors.New("named item")

func (w *memoryWork) writeNamed(ctx context.Context, items []int, again bool) ([]error, error) {
	if i := slices.Index(items, -1); i >= 0 {
		_, _ = w.write(ctx, []int{-1}, again) // count it
		return nil, OfItem(i, errNamed)
	}
	return w.write(ctx, items, again)
}

// A bad item that the work names costs one more transaction, and one that it
// cannot name a few: the others do not go one by one.
func TestCommitterDoesNotWriteOneByOneForABadItem(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ bad, most int }{
		"named": {-1, 2}, "not named": {-2, 17},
	} {
		w := &memoryWork{}
		var running sync.WaitGroup
		c := NewCommitter(&running, Config[int]{Work: w.writeNamed, Alone: anyItem, Weigh: alike})
		items := make([]int, MaxItems)
		for i := range items {
			items[i] = i
		}
		items[100] = tt.bad
		for i, err := range c.commit(items) {
			if (err != nil) != (i == 100) {
				t.Errorf("%s: item %d: %v", name, i, err)
			}
		}
		if len(w.batches) > tt.most || len(w.written) != MaxItems-1 {
			t.Errorf("%s: %d transactions wrote %d items, want at most %d and %d", name, len(w.batches), len(w.written), tt.most, MaxItems-1)
		}
		c.Close()
		running.Wait()
	}
}

// An item that the work refuses has its own error, and the others are written.
func TestCommitterReturnsTheErrorsOfRefusedItems(t *testing.T) {
	t.Parallel()
	var running sync.WaitGroup
	c := NewCommitter(&running, Config[int]{Alone: anyItem, Weigh: alike, Work: func(_ context.Context, items []int, _ bool) ([]error, error) {
		if i := slices.Index(items, -1); i >= 0 {
			return nil, OfItem(i, errNamed)
		}
		refused := make([]error, len(items))
		for i, n := range items {
			if n%2 == 1 {
				refused[i] = errBadItem
			}
		}
		return refused, nil
	}})
	got := c.commit([]int{0, 1, -1, 2, 3})
	want := []error{nil, errBadItem, errNamed, nil, errBadItem}
	for i := range want {
		if !errors.Is(got[i], want[i]) {
			t.Errorf("item %d: %v, want %v", i, got[i], want[i])
		}
	}
	c.Close()
	running.Wait()
}

// When every item is bad the work stays linear.
func TestCommitterBoundsTheWorkForBadItems(t *testing.T) {
	t.Parallel()
	w := &memoryWork{}
	var running sync.WaitGroup
	c := NewCommitter(&running, Config[int]{Work: w.writeNamed, Alone: anyItem, Weigh: alike})
	defer running.Wait()
	defer c.Close()
	items := make([]int, MaxItems)
	for i := range items {
		items[i] = -1
	}
	for i, err := range c.commit(items) {
		if !errors.Is(err, errNamed) {
			t.Errorf("item %d: %v", i, err)
		}
	}
	if len(w.batches) > 2*MaxItems {
		t.Errorf("%d transactions for %d bad items", len(w.batches), MaxItems)
	}
}

// A caller does not wait for a database that hangs for longer than its own
// deadline, or than Timeout, and what it stopped before its turn is not
// written.
func TestCommitterLetsCallersKeepTheirDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &memoryWork{}
		var running, callers sync.WaitGroup
		hold := make(chan struct{})
		c := NewCommitter(&running, Config[int]{Alone: anyItem, Weigh: alike, Work: func(ctx context.Context, items []int, again bool) ([]error, error) {
			<-hold
			return w.write(ctx, items, again)
		}})
		begin := time.Now()
		call := func(n int, deadline, want time.Duration, kind error) {
			callers.Go(func() {
				ctx := t.Context()
				if deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, deadline)
					defer cancel()
				}
				err := c.Do(ctx, n)
				if took := time.Since(begin); !errors.Is(err, kind) || took != want {
					t.Errorf("item %d ended after %v with %v, want %v and %v", n, took, err, want, kind)
				}
			})
			synctest.Wait()
		}
		call(1, 10*time.Second, 10*time.Second, engine.ErrUnavailable)  // it is being written
		call(2, 5*time.Second, 5*time.Second, context.DeadlineExceeded) // it waits
		call(3, 0, Timeout, engine.ErrUnavailable)
		if since, busy := c.BusySince(); !busy || !since.Equal(begin) {
			t.Errorf("busy since %v, %v", since, busy)
		}
		callers.Wait()
		close(hold)
		c.Close()
		running.Wait()
		if !slices.Equal(w.written, []int{1}) {
			t.Errorf("written: %v, want only what was begun", w.written)
		}
		if _, busy := c.BusySince(); busy {
			t.Error("still busy")
		}
	})
}
