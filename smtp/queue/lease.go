package queue

import (
	"context"
	"sync"
	"time"

	"github.com/postroom/postroom/store"
)

// holding is the claim of a job on its recipients. It ends when the lease expires
// without renewal, or when another process claims one of the recipients.
type holding struct {
	mu     sync.Mutex
	until  time.Time       // end of the lease, less a margin
	open   map[int64]int64 // fences of recipients without a recorded result, by recipient
	lost   bool
	giveUp context.CancelFunc // cancels the attempt; nil before it begins
}

func newHolding(rcpts []store.Claimed, until time.Time) *holding {
	h := &holding{until: until, open: make(map[int64]int64, len(rcpts))}
	for _, r := range rcpts {
		h.open[r.Seq] = r.Fence
	}
	return h
}

// ours reports whether the lease is still valid. It checks both clocks: the
// monotonic clock stops while the machine sleeps, and the wall clock may be set
// back.
func (h *holding) ours(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.lost && now.Before(h.until) && now.Round(0).Before(h.until.Round(0))
}

// begin sets the function that cancels the attempt when the claim is lost.
func (h *holding) begin(giveUp context.CancelFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.giveUp = giveUp
	if h.lost {
		giveUp()
	}
}

// settle removes a recipient whose result is recorded or never will be.
func (h *holding) settle(rcpt int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, rcpt)
}

func (h *holding) leases() []store.Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	leases := make([]store.Lease, 0, len(h.open))
	for rcpt, fence := range h.open {
		leases = append(leases, store.Lease{RecipientSeq: rcpt, Fence: fence})
	}
	return leases
}

func (h *holding) extend(until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until = until
}

// lose ends the claim if rcpt has no result yet. The whole attempt ends, because
// it would also send to the recipient that another process has claimed.
func (h *holding) lose(rcpt int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, open := h.open[rcpt]; !open {
		return
	}
	h.lost = true
	if h.giveUp != nil {
		h.giveUp()
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
		for _, l := range j.holding.leases() {
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
		j.holding.extend(until)
	}
	for _, l := range lost {
		jobs[l].holding.lose(l.RecipientSeq)
	}
}
