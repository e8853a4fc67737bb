package webhook

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// maxComposing is the number of events composed concurrently, and maxHeld
	// the maximum total size of bodies being posted, in bytes.
	maxComposing = 16
	maxHeld      = 64 << 20
	// maxPerClaim is the maximum number of deliveries that one claim takes, and
	// maxClaimed that of claimed ones that wait.
	maxPerClaim = 64
	maxClaimed  = 1024
	// maxBad is the maximum number of endpoints in Dispatcher.bad.
	maxBad = 10_000
)

// Dispatcher delivers events to webhook endpoints. Several dispatchers, also on
// several nodes, can share a store.
type Dispatcher struct {
	cfg       Config
	post      *poster
	jobs      *work.Dispatcher
	composing *semaphore.Weighted // events composed concurrently
	held      *semaphore.Weighted // bytes being posted

	mu  sync.Mutex
	bad map[int64]health // endpoints that are not well
}

// health is the state of an endpoint.
type health int

const (
	well health = iota
	slow        // its last attempt took long
	failing
)

// New returns a Dispatcher. It does nothing until Run, RunOnce or Test. It
// returns an error if a required field of cfg is missing.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Store == nil || cfg.Body == nil || cfg.Targets == nil {
		return nil, errors.New("webhooks: store, body and targets are required")
	}
	cfg.setDefaults()
	d := &Dispatcher{
		cfg: cfg, post: newPoster(cfg), bad: map[int64]health{},
		composing: semaphore.NewWeighted(maxComposing), held: semaphore.NewWeighted(maxHeld),
	}
	d.jobs = work.NewDispatcher(work.DispatcherConfig{
		Name: "webhooks", Claim: d.claim,
		Next: func(ctx context.Context, busy *work.Busy) (*time.Time, error) {
			due, err := cfg.Store.NextDue(ctx, store.WorkDeliveries, busy)
			if due == nil || err != nil {
				return nil, err
			}
			return &due.Time, nil
		},
		Renew: func(ctx context.Context, leases []work.Lease) ([]work.Lease, error) {
			return cfg.Store.RenewLeases(ctx, store.WorkDeliveries, leases, cfg.Lease)
		},
		Limit:  d.limit,
		Places: cfg.MaxPosts, Spare: (cfg.MaxPosts + 1) / 2, Claimed: maxClaimed, Batch: maxPerClaim,
		Lease: cfg.Lease, Grace: cfg.Grace, Now: cfg.Now, Log: cfg.Log,
	})
	return d, nil
}

// Run delivers due events until ctx ends. Then it claims no more deliveries,
// waits up to Grace for attempts, cancels the others, whose deliveries become
// due again, and returns.
func (d *Dispatcher) Run(ctx context.Context) error {
	defer d.post.close()
	wake := d.cfg.Store.WakeWebhooks()
	defer wake.Stop()
	d.jobs.Run(ctx, wake.C)
	return nil
}

// RunOnce claims and attempts one batch of due deliveries. It returns their number
// when all results are recorded.
func (d *Dispatcher) RunOnce(ctx context.Context) (int, error) { return d.jobs.RunOnce(ctx) }

// claim claims due deliveries.
func (d *Dispatcher) claim(ctx context.Context, limit int, busy *work.Busy) ([]*work.Job, error) {
	claimed, err := d.cfg.Store.ClaimDeliveries(ctx, limit, d.cfg.Lease, busy)
	jobs := make([]*work.Job, 0, len(claimed))
	for _, c := range claimed {
		if c.Webhook.FailingSince != nil {
			d.note(c.EndpointSeq, failing)
		}
		jobs = append(jobs, &work.Job{
			Key: c.EndpointSeq, Names: []any{c.EndpointSeq}, Account: c.AccountID, Leases: []work.Lease{{Row: c.Seq, Fence: c.Fence}},
			Attempt: func(ctx context.Context) func(context.Context) {
				r := d.attempt(ctx, c)
				d.note(c.EndpointSeq, d.healthAfter(r))
				return func(ctx context.Context) { d.record(ctx, c, r) }
			},
			Release: func(ctx context.Context) { d.record(ctx, c, untried(resultOf(c))) },
		})
	}
	return jobs, err
}

// limit is the number of concurrent deliveries of an endpoint. A failing endpoint gets
// one at a time. A slow endpoint may succeed, but occupies its places as long as a
// failing one.
func (d *Dispatcher) limit(endpoint any) (limit int, bad bool) {
	seq, _ := endpoint.(int64)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.bad[seq] {
	case failing:
		return 1, true
	case slow:
		return d.cfg.PerEndpoint, true
	}
	return d.cfg.PerEndpoint, false
}

// healthAfter is what the result of an attempt says about the endpoint.
func (d *Dispatcher) healthAfter(r store.DeliveryResult) health {
	switch {
	case r.Counts && r.Status != store.DeliverySucceeded:
		return failing
	case r.DurationMs != nil && time.Duration(*r.DurationMs)*time.Millisecond > d.cfg.Timeout/5:
		return slow
	}
	return well
}

// note records the health of an endpoint.
func (d *Dispatcher) note(endpoint int64, h health) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h == well {
		delete(d.bad, endpoint)
		return
	}
	if len(d.bad) >= maxBad { // most entries are outdated by now
		clear(d.bad)
	}
	d.bad[endpoint] = h
}
