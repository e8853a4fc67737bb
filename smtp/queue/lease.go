package queue

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/postroom/postroom/store"
)

// claim is the claim of a job on its recipients. It ends when the lease expires
// without renewal, or when another process claims one of the recipients.
type claim struct {
	mu     sync.Mutex
	until  time.Time       // end of the lease, less a margin
	open   map[int64]int64 // fences of recipients without a recorded result, by recipient
	lost   bool
	cancel context.CancelCauseFunc // cancels the attempt; nil before it begins
	cut    bool                    // the attempt took too long
	handed bool                    // a server may have the whole message
}

func newClaim(rcpts []store.Claimed, until time.Time) *claim {
	c := &claim{until: until, open: make(map[int64]int64, len(rcpts))}
	for _, r := range rcpts {
		c.open[r.Seq] = r.Fence
	}
	return c
}

// ours reports whether the lease is still valid. It checks both clocks: the
// monotonic clock stops while the machine sleeps, and the wall clock may be set
// back.
func (c *claim) ours(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.lost && now.Before(c.until) && now.Round(0).Before(c.until.Round(0))
}

// begin sets the function that cancels the attempt when the claim is lost.
func (c *claim) begin(cancel context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel = cancel
	if c.lost {
		cancel(nil)
	}
}

// errSlow means that an attempt took too long.
var errSlow = fmt.Errorf("attempt takes too long: %w", context.DeadlineExceeded)

// mayEnd reports whether the attempt has been ended, and whether it may be. It may not
// while a server may have the whole message, which would be sent again.
func (c *claim) mayEnd() (ended, may bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut, c.cancel != nil && !c.cut && !c.handed
}

// end ends the attempt as a timeout does, if mayEnd.
func (c *claim) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil && !c.cut && !c.handed {
		c.cut = true
		c.cancel(errSlow)
	}
}

// hand records that a server gets the end of the message, or returns errSlow if
// the attempt has been ended. handled records that the server has replied.
func (c *claim) hand() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return errSlow
	}
	c.handed = true
	return nil
}

func (c *claim) handled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handed = false
}

// settle removes a recipient whose result is recorded or never will be.
func (c *claim) settle(rcpt int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, rcpt)
}

func (c *claim) leases() []store.Lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	leases := make([]store.Lease, 0, len(c.open))
	for rcpt, fence := range c.open {
		leases = append(leases, store.Lease{RecipientSeq: rcpt, Fence: fence})
	}
	return leases
}

func (c *claim) extend(until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = until
}

// lose ends the claim if rcpt has no result yet. The whole attempt ends, because
// it would also send to the recipient that another process has claimed.
func (c *claim) lose(rcpt int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, open := c.open[rcpt]; !open {
		return
	}
	c.lost = true
	if c.cancel != nil {
		c.cancel(nil)
	}
}

// leaseEnd returns when a lease requested at now ends. The margin allows for
// clock differences and for the last bytes of a message.
func (q *Queue) leaseEnd(now time.Time) time.Time { return now.Add(q.lease * 9 / 10) }

// renewLeases renews all leases once. If it fails, the leases expire, and no
// messages are sent until a renewal succeeds.
func (q *Queue) renewLeases(ctx context.Context) {
	jobs := map[store.Lease]*job{}
	var leases []store.Lease
	held := q.jobs.held()
	for _, j := range held {
		for _, l := range j.claim.leases() {
			jobs[l] = j
			leases = append(leases, l)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	until := q.leaseEnd(q.now())
	lost, err := q.store.RenewLeases(ctx, leases, q.lease)
	if err != nil {
		if !brokenOff(ctx) {
			q.log.WarnContext(ctx, "leases cannot be renewed", "recipients", len(leases), "error", err)
		}
		return
	}
	for _, j := range held {
		j.claim.extend(until)
	}
	for _, l := range lost {
		jobs[l].claim.lose(l.RecipientSeq)
	}
}
