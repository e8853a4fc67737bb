package store

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// commitTimeout is after how long a database that does not answer is given up.
const commitTimeout = 30 * time.Second

// maxBatch is the most that shares one transaction: in writes, which weigh more
// than one when they make many rows. A batch of emails alone may exceed it.
const maxBatch = 256

// committer writes many small changes in few transactions: it takes all that
// waits, writes it at once, and answers every caller after the commit. So the
// cost of a synced commit is shared, and no caller waits for a timer.
type committer[T any] struct {
	work  func(context.Context, []T) error
	alone func(error) bool
	weigh func(T) int
	queue chan pending[T]

	mu     sync.RWMutex // held for reading while sending to queue
	closed bool
}

type pending[T any] struct {
	item T
	done chan error
}

// newCommitter starts the goroutine that commits; it ends after close. work
// writes 1 to maxBatch items in one transaction, all or none. alone says of an
// error whether one of the items may be its cause, and weigh how many writes an
// item stands for, at least 1.
func newCommitter[T any](
	running *sync.WaitGroup, work func(context.Context, []T) error, alone func(error) bool, weigh func(T) int,
) *committer[T] {
	c := &committer[T]{work: work, alone: alone, weigh: weigh, queue: make(chan pending[T], maxBatch)}
	running.Go(c.run)
	return c
}

// do hands item over and waits for its commit. When ctx ends before the item
// was taken it is not written; once taken, do waits for the outcome, so that an
// error always means "not written" and nil "written".
func (c *committer[T]) do(ctx context.Context, item T) error {
	p := pending[T]{item: item, done: make(chan error, 1)}
	if err := c.enqueue(ctx, p); err != nil {
		return err
	}
	return <-p.done
}

func (c *committer[T]) enqueue(ctx context.Context, p pending[T]) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.closed {
		return errClosed
	}
	select {
	case c.queue <- p:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close lets what waits be written and ends the goroutine.
func (c *committer[T]) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.queue)
	}
}

func (c *committer[T]) run() {
	batch := make([]pending[T], 0, maxBatch)
	items := make([]T, 0, maxBatch)
	for first := range c.queue {
		batch = c.gather(append(batch[:0], first))
		items = items[:0]
		for _, p := range batch {
			items = append(items, p.item)
		}
		for i, err := range c.commit(items) {
			batch[i].done <- err
		}
		clear(batch)
		clear(items)
	}
}

// gather adds to batch all that waits. Callers that the last commit has just
// answered get one chance to bring their next item first: a batch of all of
// them and one commit cost less than two.
func (c *committer[T]) gather(batch []pending[T]) []pending[T] {
	yielded := false
	for weight := c.weigh(batch[0].item); weight < maxBatch; {
		select {
		case p, ok := <-c.queue:
			if !ok {
				return batch
			}
			batch = append(batch, p)
			weight += c.weigh(p.item)
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
// When it fails because of an item, the items go one by one, so that a bad one
// fails alone.
func (c *committer[T]) commit(items []T) []error {
	errs := make([]error, len(items))
	err := c.write(items)
	if err == nil {
		return errs
	}
	for i := range items {
		errs[i] = err
		if len(items) > 1 && c.alone(err) {
			errs[i] = c.write(items[i : i+1])
		}
	}
	return errs
}

// write does not listen to the callers' contexts: a commit that was begun is
// brought to its end.
func (c *committer[T]) write(items []T) error {
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	return c.work(ctx, items)
}
