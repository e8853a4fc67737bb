package work

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Job is one attempt at rows of work that a dispatcher has claimed.
type Job struct {
	Key     any   // what it needs a place of: a destination, an endpoint
	Names   []any // of its rows in Busy.Keys
	Account int64 // whose work it is
	Local   bool  // it occupies no network, and so no place of its account
	Leases  []Lease
	// MaxTime is how long the attempt may take, 0 for no limit.
	MaxTime time.Duration
	// Attempt makes the attempt and returns the function that records its result.
	// Its context is cancelled when a lease is lost, the attempt takes too long or
	// the dispatcher stops.
	Attempt func(ctx context.Context) (record func(context.Context))
	// Release records that there was no attempt.
	Release func(context.Context)

	run     func() (record func()) // makes the attempt
	now     func() time.Time
	started time.Time // zero while it waits

	mu     sync.Mutex
	until  time.Time // end of the leases, less a margin
	left   []Lease   // without a recorded result
	lost   bool
	cancel context.CancelCauseFunc // cancels the attempt; nil before it begins
	cut    bool                    // the attempt took too long
	handed bool                    // the other side may have all of it
}

// ErrSlow is the cause of the end of an attempt that took too long.
var ErrSlow = fmt.Errorf("attempt takes too long: %w", context.DeadlineExceeded)

// hold prepares a job that was claimed until then. Its attempt and the record of its
// result get contexts of ctx.
func (j *Job) hold(ctx context.Context, now func() time.Time, until time.Time) {
	j.now, j.until, j.left = now, until, slices.Clone(j.Leases)
	j.run = func() func() {
		attempt, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		j.mu.Lock()
		j.cancel = cancel
		j.mu.Unlock()
		if !j.Ours() { // another claim will do it, or already does
			return func() {}
		}
		record := j.Attempt(attempt)
		return func() { record(ctx) }
	}
}

// Ours reports whether the leases are still valid. It checks both clocks: the
// monotonic clock stops while the machine sleeps, and the wall clock may be set back.
func (j *Job) Ours() bool {
	now := j.now()
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.lost && now.Before(j.until) && now.Round(0).Before(j.until.Round(0))
}

// mayEnd reports whether the attempt has been ended, and whether it may be. It may not
// while the other side may have all of it, because it would be repeated.
func (j *Job) mayEnd() (ended, may bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.cut, j.cancel != nil && !j.cut && !j.handed
}

// end ends the attempt as a timeout does, if it may.
func (j *Job) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cancel != nil && !j.cut && !j.handed {
		j.cut = true
		j.cancel(ErrSlow)
	}
}

// Hand records that the other side gets the end of the work, or returns ErrSlow if the
// attempt has been ended. Handled records that the other side has replied.
func (j *Job) Hand() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cut {
		return ErrSlow
	}
	j.handed = true
	return nil
}

// Handled ends what Hand began.
func (j *Job) Handled() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.handed = false
}

// Settle removes the lease of a row whose result is recorded or never will be, so that
// it is not renewed.
func (j *Job) Settle(row int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = slices.DeleteFunc(j.left, func(l Lease) bool { return l.Row == row })
}

// open returns the leases without a result.
func (j *Job) open() []Lease {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.left)
}

func (j *Job) extend(until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.until = until
}

// lose ends the leases if l has no result yet. The whole attempt ends, because it
// would also do the row that another node has claimed.
func (j *Job) lose(l Lease) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Contains(j.left, l) {
		return
	}
	j.lost = true
	if j.cancel != nil {
		j.cancel(nil)
	}
}
