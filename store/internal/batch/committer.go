// Package batch writes many changes in few transactions: the group committer, and
// statements for sets of rows.
package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/store/internal/engine"
)

// ErrClosed is the error of a committer after Close.
var ErrClosed = fmt.Errorf("%w: the store is closed", engine.ErrUnavailable)

// Timeout is how long a transaction may take.
const Timeout = 30 * time.Second

// MaxItems is the most that shares one transaction: in writes, which weigh more
// than one when they make many rows. A batch of emails alone may exceed it.
const MaxItems = 256

// maxFailures bounds how many bad items are left out of a batch one by one. What
// is left after that is halved.
const maxFailures = 8

// Committer writes many small changes in few transactions: it takes all that
// waits, writes it at once, and returns to every caller after the commit. So the
// cost of a synced commit is shared, and no caller waits for a timer.
type Committer[T any] struct {
	Config[T]
	queue chan *pending[T]

	mu     sync.RWMutex // held for reading while sending to queue
	closed bool

	began atomic.Int64 // when the batch that is being written was begun, in Unix nanoseconds; 0: none is
}

// Queued is the number of items that wait for a transaction.
func (c *Committer[T]) Queued() int { return len(c.queue) }

// pending is an item and its caller.
type pending[T any] struct {
	item  T
	done  chan error
	state atomic.Int32
}

// The states of a pending item. The caller and the committer race for it.
const (
	itemWaits int32 = iota
	itemTaken
	itemLeft // by its caller: it must not be written
)

func newPending[T any](item T) *pending[T] {
	return &pending[T]{item: item, done: make(chan error, 1)}
}

func (p *pending[T]) take() bool  { return p.state.CompareAndSwap(itemWaits, itemTaken) }
func (p *pending[T]) leave() bool { return p.state.CompareAndSwap(itemWaits, itemLeft) }

// ItemError is the error of a batch that one of its items caused.
type ItemError struct {
	Index int // of the item in the batch
	Err   error
}

func (e *ItemError) Error() string { return e.Err.Error() }
func (e *ItemError) Unwrap() error { return e.Err }

// OfItem returns err as the error of one item, or nil.
func OfItem(index int, err error) error {
	if err == nil {
		return nil
	}
	return &ItemError{index, err}
}

// Config is what a committer does with its items.
type Config[T any] struct {
	// Work writes 1 to MaxItems items in one transaction. again reports that they
	// were part of a batch that failed. err means that nothing was written; an
	// ItemError names the item that caused it. Otherwise refused, unless nil, has an
	// error for each item that Work left out of the transaction.
	Work func(ctx context.Context, items []T, again bool) (refused []error, err error)
	// Alone reports whether one of the items may have caused an error.
	Alone func(error) bool
	// Apart reports whether an item is written alone because it may fail; nil means
	// that no item is.
	Apart func(T) bool
	// Weigh is the number of writes that an item stands for, at least 1.
	Weigh func(T) int
}

// NewCommitter starts the goroutine that commits; it ends after close.
func NewCommitter[T any](running *sync.WaitGroup, do Config[T]) *Committer[T] {
	c := &Committer[T]{Config: do, queue: make(chan *pending[T], MaxItems)}
	running.Go(c.run)
	return c
}

// Do queues item and waits for its commit. nil means "written". An error
// means "not written", with one exception: a caller whose deadline passes while
// its item is being written gets engine.ErrUnavailable, and the item may be written.
// No one waits longer than Timeout.
func (c *Committer[T]) Do(ctx context.Context, item T) error {
	p := newPending(item)
	if err := c.enqueue(ctx, p); err != nil {
		return err
	}
	limit := time.NewTimer(Timeout)
	defer limit.Stop()
	ended := ctx.Done()
	for {
		select {
		case err := <-p.done:
			return err
		case <-ended:
			if p.leave() {
				return ctx.Err()
			}
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%w: the write did not end before its deadline", engine.ErrUnavailable)
			}
			ended = nil // the caller has gone, and learns the outcome if it can
		case <-limit.C:
			p.leave()
			return fmt.Errorf("%w: the write did not end within %v", engine.ErrUnavailable, Timeout)
		}
	}
}

func (c *Committer[T]) enqueue(ctx context.Context, p *pending[T]) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return ErrClosed
	}
	select {
	case c.queue <- p:
		return nil
	default:
	}
	limit := time.NewTimer(Timeout)
	defer limit.Stop()
	select {
	case c.queue <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C:
		return fmt.Errorf("%w: no turn to write within %v", engine.ErrUnavailable, Timeout)
	}
}

// Close writes what waits and ends the goroutine.
func (c *Committer[T]) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.queue)
	}
}

// BusySince returns when the batch that is being written was begun.
func (c *Committer[T]) BusySince() (since time.Time, busy bool) {
	ns := c.began.Load()
	return time.Unix(0, ns), ns != 0
}

func (c *Committer[T]) run() {
	batch := make([]*pending[T], 0, MaxItems)
	items := make([]T, 0, MaxItems)
	for first := range c.queue {
		batch = c.gather(append(batch[:0], first))
		batch = slices.DeleteFunc(batch, func(p *pending[T]) bool { return !p.take() })
		items = items[:0]
		for _, p := range batch {
			items = append(items, p.item)
		}
		if len(items) > 0 {
			c.began.Store(time.Now().UnixNano())
			for i, err := range c.commit(items) {
				batch[i].done <- err
			}
			c.began.Store(0)
		}
		clear(batch[:cap(batch)])
		clear(items)
	}
}

// gather adds to batch all that waits. Callers that the last commit has just
// returned to get one chance to bring their next item first: a batch of all of
// them and one commit cost less than two.
func (c *Committer[T]) gather(batch []*pending[T]) []*pending[T] {
	yielded := false
	for weight := c.Weigh(batch[0].item); weight < MaxItems; {
		select {
		case p, ok := <-c.queue:
			if !ok {
				return batch
			}
			batch = append(batch, p)
			weight += c.Weigh(p.item)
			continue
		default:
		}
		if yielded {
			break
		}
		runtime.Gosched()
		yielded = true
	}
	return batch
}

// commit writes the batch at once and returns one error (or nil) for each item.
// When it fails because of an item that is known, that one is left out and the
// others are written again. When the item is not known, the batch is halved.
func (c *Committer[T]) commit(items []T) []error {
	all := part[T]{errs: make([]error, len(items))}
	for i, item := range items {
		all.errs[i] = errNotTried
		all.items, all.at = append(all.items, item), append(all.at, i)
	}
	rest := part[T]{errs: all.errs}
	for i, item := range items {
		if c.Apart == nil || !c.Apart(item) {
			rest.items, rest.at = append(rest.items, item), append(rest.at, i)
			continue
		}
		if err := c.commitPart(all.slice(i, i+1), true); err != nil {
			all.fail(err)
			return all.errs
		}
	}
	if err := c.commitPart(rest, false); err != nil {
		all.fail(err)
	}
	return all.errs
}

// part is a part of a batch: its items, their places in the batch, and the errors
// of the batch.
type part[T any] struct {
	items []T
	at    []int
	errs  []error
}

// errNotTried stands for the outcome of an item that is yet to be written.
var errNotTried = errors.New("not written yet")

func (p part[T]) slice(from, to int) part[T] { return part[T]{p.items[from:to], p.at[from:to], p.errs} }

// fail sets the error of the items that were not tried.
func (p part[T]) fail(err error) {
	for _, at := range p.at {
		if p.errs[at] == errNotTried { //nolint:errorlint // it is never wrapped
			p.errs[at] = err
		}
	}
}

// without is p without its item at i, whose error is err.
func (p part[T]) without(i int, err error) part[T] {
	p.errs[p.at[i]] = err
	return part[T]{slices.Concat(p.items[:i], p.items[i+1:]), slices.Concat(p.at[:i], p.at[i+1:]), p.errs}
}

// commitPart writes a part of a batch. It returns an error that is not an item's:
// then nothing more is to be tried.
func (c *Committer[T]) commitPart(p part[T], again bool) error {
	var refused []error
	var err error
	for left := 0; len(p.items) > 0; left++ {
		refused, err = c.write(p.items, again)
		bad, known := errors.AsType[*ItemError](err)
		if !known || left == maxFailures {
			break
		}
		p, again = p.without(bad.Index, bad.Err), true
	}
	switch {
	case len(p.items) == 0:
		return nil
	case err == nil:
		for i, at := range p.at {
			p.errs[at] = nil
			if refused != nil {
				p.errs[at] = refused[i]
			}
		}
		return nil
	case !c.Alone(err):
		return err
	case len(p.items) == 1:
		p.fail(err)
		return nil
	}
	half := len(p.items) / 2
	if err := c.commitPart(p.slice(0, half), true); err != nil {
		return err
	}
	return c.commitPart(p.slice(half, len(p.items)), true)
}

// write does not listen to the callers' contexts: a commit that was begun is
// brought to its end.
func (c *Committer[T]) write(items []T, again bool) ([]error, error) {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	return c.Work(ctx, items, again)
}
