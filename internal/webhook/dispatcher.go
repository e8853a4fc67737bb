package webhook

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// pollEvery is the maximum interval between checks for due deliveries.
	pollEvery = time.Second
	// storeTimeout limits a claim.
	storeTimeout = 10 * time.Second
	// contendedPause is the pause for an endpoint whose deliveries another node
	// has claimed.
	contendedPause = 50 * time.Millisecond
	// maxComposing is the number of events composed concurrently, and maxHeld
	// the maximum total size of bodies being posted, in bytes.
	maxComposing = 16
	maxHeld      = 64 << 20
	// maxSlow is the maximum number of endpoints in Dispatcher.slow and
	// Dispatcher.served.
	maxSlow = 10_000
)

// Dispatcher delivers events to webhook endpoints. Several dispatchers, also on
// several nodes, can share a store.
type Dispatcher struct {
	cfg       Config
	post      *poster
	composing *semaphore.Weighted // events composed concurrently
	held      *semaphore.Weighted // bytes being posted

	mu      sync.Mutex
	serving map[int64]bool // endpoints being served; true if the endpoint is failing or slow
	bad     int            // number of true values in serving
	slow    map[int64]bool // endpoints whose last turn was slow
	served  map[int64]int  // failing or slow endpoints, with the number of their last turn
	count   int            // turns of failing or slow endpoints
	turns   sync.WaitGroup
	freed   chan struct{} // receives when an endpoint is released
}

// New returns a Dispatcher. It does nothing until Run, RunOnce or Test. It
// returns an error if a required field of cfg is missing.
func New(cfg Config) (*Dispatcher, error) {
	if cfg.Store == nil || cfg.Body == nil || cfg.Targets == nil {
		return nil, errors.New("webhooks: store, body and targets are required")
	}
	cfg.setDefaults()
	return &Dispatcher{
		cfg: cfg, post: newPoster(cfg),
		composing: semaphore.NewWeighted(maxComposing), held: semaphore.NewWeighted(maxHeld),
		serving: map[int64]bool{}, slow: map[int64]bool{}, served: map[int64]int{}, freed: make(chan struct{}, 1),
	}, nil
}

// Run delivers due events until ctx ends. Then it claims no more deliveries,
// waits up to Grace for attempts, cancels the others, whose deliveries become
// due again, and returns.
func (d *Dispatcher) Run(ctx context.Context) error {
	defer d.post.close()
	wake := d.cfg.Store.WakeWebhooks()
	defer wake.Stop()
	attempts, breakOff := context.WithCancel(context.WithoutCancel(ctx))
	defer breakOff()
	work.Due(ctx, func(ctx context.Context) time.Duration {
		pause, err := d.round(ctx, func(e store.DueEndpoint) { d.serve(ctx, attempts, e) })
		if err != nil && ctx.Err() == nil {
			d.cfg.Log.WarnContext(ctx, "cannot look for webhook deliveries", "error", err)
		}
		return pause
	}, wake.C, d.freed)
	work.Drain(d.cfg.Grace, d.turns.Wait, breakOff)
	return nil
}

// RunOnce gives each endpoint with due deliveries one turn. After all results
// are recorded, it returns the number of attempts.
func (d *Dispatcher) RunOnce(ctx context.Context) (int, error) {
	var mu sync.Mutex
	all := 0
	var errs []error
	_, err := d.round(ctx, func(e store.DueEndpoint) {
		done, err := d.turn(ctx, e)
		mu.Lock()
		defer mu.Unlock()
		all += done.attempts
		errs = append(errs, err)
	})
	d.turns.Wait()
	return all, errors.Join(append(errs, err)...)
}

// round starts to serve the endpoints with due deliveries, up to the limits.
// pause is the maximum time until the next round.
func (d *Dispatcher) round(ctx context.Context, serve func(store.DueEndpoint)) (pause time.Duration, err error) {
	due, err := d.cfg.Store.DueEndpoints(ctx, d.busy())
	if err != nil {
		return pollEvery, err
	}
	d.inTurn(due)
	now := d.cfg.Now()
	pause = pollEvery
	for _, e := range due {
		if wait := e.Due.Sub(now); wait > 0 {
			pause = min(pause, wait)
			continue
		}
		if !d.take(e) {
			continue // freed signals when there is room
		}
		go func() {
			defer d.release(e)
			serve(e)
		}()
	}
	return pause, nil
}

// serve attempts the due deliveries of an endpoint until there are none, or it
// fails or is slow. Then it competes with the failing and slow endpoints for
// its next turn.
func (d *Dispatcher) serve(ctx, attempts context.Context, e store.DueEndpoint) {
	for ctx.Err() == nil {
		done, err := d.turn(attempts, e)
		slow := done.longest > d.cfg.Timeout/5
		d.note(e.Seq, slow)
		switch {
		case err != nil:
			d.cfg.Log.WarnContext(ctx, "cannot claim webhook deliveries", "error", err)
			work.Pause(ctx, pollEvery, nil)
			return
		case done.attempts == 0: // another node has claimed them
			work.Pause(ctx, contendedPause, nil)
			return
		case slow || done.failed || done.attempts < d.cfg.PerEndpoint:
			return
		}
	}
}

// turnDone is the result of a turn.
type turnDone struct {
	attempts int
	failed   bool          // at least one attempt failed
	longest  time.Duration // duration of the longest attempt
}

// turn claims deliveries of an endpoint, attempts them concurrently and returns
// after their results are recorded.
func (d *Dispatcher) turn(ctx context.Context, e store.DueEndpoint) (done turnDone, err error) {
	limit := d.cfg.PerEndpoint
	if e.FailingSince != nil {
		limit = 1
	}
	claiming, cancel := context.WithTimeout(ctx, storeTimeout)
	w, claimed, err := d.cfg.Store.ClaimDeliveries(claiming, e.Seq, limit, d.cfg.Lease)
	cancel()
	if errors.Is(err, store.ErrNotFound) {
		return done, nil // deleted or disabled in the meantime
	}
	if err != nil {
		return done, err
	}
	results := make([]store.DeliveryResult, len(claimed))
	var all sync.WaitGroup
	for i, c := range claimed {
		all.Go(func() {
			results[i] = d.attempt(ctx, w, c)
			d.record(ctx, c, results[i])
		})
	}
	all.Wait()
	done.attempts = len(claimed)
	for _, r := range results {
		done.failed = done.failed || r.Status != store.DeliverySucceeded
		if r.DurationMs != nil {
			done.longest = max(done.longest, time.Duration(*r.DurationMs)*time.Millisecond)
		}
	}
	return done, nil
}

// inTurn sorts failing and slow endpoints behind the others, and among them the
// one that has waited longest first. Sorted by due time, the endpoint with the
// longest backlog would always come first.
func (d *Dispatcher) inTurn(due []store.DueEndpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortStableFunc(due, func(a, b store.DueEndpoint) int { return cmp.Compare(d.served[a.Seq], d.served[b.Seq]) })
}

// take reserves a place for the endpoint, if one is free. At least half of the
// places are reserved for endpoints that are neither failing nor slow.
func (d *Dispatcher) take(e store.DueEndpoint) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	bad := e.FailingSince != nil || d.slow[e.Seq]
	if len(d.serving) >= d.cfg.MaxEndpoints || bad && d.bad >= max(d.cfg.MaxEndpoints/2, 1) {
		return false
	}
	d.serving[e.Seq] = bad
	delete(d.served, e.Seq)
	if bad {
		d.bad++
		d.count++
		if len(d.served) >= maxSlow {
			clear(d.served)
		}
		d.served[e.Seq] = d.count
	}
	d.turns.Add(1)
	return true
}

// note records whether the endpoint is slow. A slow endpoint may succeed, but
// occupies its place as long as a failing one.
func (d *Dispatcher) note(seq int64, slow bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slow {
		delete(d.slow, seq)
		return
	}
	if len(d.slow) >= maxSlow { // most entries are outdated by now
		clear(d.slow)
	}
	d.slow[seq] = true
}

func (d *Dispatcher) release(e store.DueEndpoint) {
	d.mu.Lock()
	if d.serving[e.Seq] {
		d.bad--
	}
	delete(d.serving, e.Seq)
	d.mu.Unlock()
	select {
	case d.freed <- struct{}{}:
	default:
	}
	d.turns.Done()
}

func (d *Dispatcher) busy() []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.serving))
}
