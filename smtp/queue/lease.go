package queue

import (
	"context"
	"sync"
	"time"

	"github.com/postroom/postroom/store"
)

// holding is the claim of a job on its recipients. It ends with the lease unless
// that is renewed, and at once when another process has claimed one of them.
type holding struct {
	mu     sync.Mutex
	until  time.Time       // when the lease ends, less a margin
	open   map[int64]int64 // fences of those without a recorded outcome, by recipient
	lost   bool
	giveUp context.CancelFunc // ends the attempt; nil before it begins
}

func newHolding(rcpts []store.Claimed, until time.Time) *holding {
	h := &holding{until: until, open: make(map[int64]int64, len(rcpts))}
	for _, r := range rcpts {
		h.open[r.Seq] = r.Fence
	}
	return h
}

// ours says whether nobody else can have claimed the recipients by now. Both
// clocks are asked: the monotonic one stands still while the machine sleeps, and
// the wall clock may be set back.
func (h *holding) ours(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.lost && now.Before(h.until) && now.Round(0).Before(h.until.Round(0))
}

// begin names what ends the attempt when the claim is lost.
func (h *holding) begin(giveUp context.CancelFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.giveUp = giveUp
	if h.lost {
		giveUp()
	}
}

// settle notes that the outcome of a recipient is recorded, or never will be.
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

// lose ends the claim when rcpt has no outcome yet. An attempt for recipients of
// whom one is another's would hand over that one's mail too.
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

// leaseEnd is until when a lease that was asked for at now is relied on. The
// margin is for clocks of nodes that differ, and for the last bytes of a mail.
func (q *Queue) leaseEnd(now time.Time) time.Time { return now.Add(q.lease * 9 / 10) }

// renewLeases renews once. When it cannot, the leases go on to lapse: then no
// mail is handed over any more until it can.
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
