package webhook

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// pollEvery is after how long the dispatcher looks for work whatever it was
	// told.
	pollEvery = time.Second
	// storeTimeout is how long a claim, or one try to record an outcome, may take.
	storeTimeout = 10 * time.Second
	// contendedPause is how long an endpoint is left alone whose deliveries another
	// node was faster to claim.
	contendedPause = 50 * time.Millisecond
	// maxComposing is how many events are read and written at the same time, and
	// maxHeld how many bytes of what came of it are held while they are posted.
	maxComposing = 16
	maxHeld      = 64 << 20
	// maxSlow bounds of how many endpoints we remember that they are slow, or when
	// they had their turn.
	maxSlow = 10_000
)

// Dispatcher delivers events to webhook endpoints. Any number of them, on any
// number of nodes, can run on one store.
type Dispatcher struct {
	cfg       Config
	post      *poster
	composing *semaphore.Weighted // events that are read and written at the same time
	held      *semaphore.Weighted // bytes of what is being posted

	mu      sync.Mutex
	serving map[int64]bool // endpoints; whether it holds one of the places for bad ones
	bad     int            // how many of them do
	slow    map[int64]bool // endpoints whose last turn took long
	served  map[int64]int  // endpoints that held a place for bad ones; the last turn of theirs
	count   int            // turns of such endpoints
	turns   sync.WaitGroup
	freed   chan struct{} // receives when an endpoint is no longer served
}

// New returns a dispatcher that does nothing until Run, RunOnce or Test.
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

// Run delivers what is due until ctx ends. Then it claims nothing more, lets
// attempts finish for the time of Grace, breaks off the others, whose deliveries
// are then as they were, and returns when nothing of it runs any more.
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

// RunOnce gives each endpoint that has something due one turn and returns, when
// all of it is recorded, how many deliveries were attempted.
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

// round begins to serve the endpoints that have something due, as far as there is
// room. pause is how long there is nothing more to do, as far as is known.
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
			continue // freed will tell
		}
		go func() {
			defer d.release(e)
			serve(e)
		}()
	}
	return pause, nil
}

// serve attempts what is due of an endpoint until there is no more, or it fails
// or is slow: then it is served as such a one, and others have their turn first.
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
		case done.attempts == 0: // another node has them
			work.Pause(ctx, contendedPause, nil)
			return
		case slow || done.failed || done.attempts < d.cfg.PerEndpoint:
			return
		}
	}
}

// turnDone is what came of a turn.
type turnDone struct {
	attempts int
	failed   bool          // one of them at least
	longest  time.Duration // from post to answer
}

// turn claims some deliveries of an endpoint, attempts them at the same time, and
// returns when their outcomes are recorded.
func (d *Dispatcher) turn(ctx context.Context, e store.DueEndpoint) (done turnDone, err error) {
	limit := d.cfg.PerEndpoint
	if e.FailingSince != nil {
		limit = 1
	}
	claiming, cancel := context.WithTimeout(ctx, storeTimeout)
	w, claimed, err := d.cfg.Store.ClaimDeliveries(claiming, e.Seq, limit, d.cfg.Lease)
	cancel()
	if errors.Is(err, store.ErrNotFound) {
		return done, nil // deleted or turned off since
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

// inTurn puts endpoints that fail or are slow behind the others, and those first
// that have waited longest: by when their deliveries are due, the one with the
// most of them would always come first.
func (d *Dispatcher) inTurn(due []store.DueEndpoint) {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortStableFunc(due, func(a, b store.DueEndpoint) int { return cmp.Compare(d.served[a.Seq], d.served[b.Seq]) })
}

// take reserves the endpoint, unless there is no room. Half of the room is for
// those that neither fail nor are slow, however many of the others hang.
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

// note remembers whether the endpoint is slow. It may well succeed, and hold its
// place all the same for as long as one that fails.
func (d *Dispatcher) note(seq int64, slow bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slow {
		delete(d.slow, seq)
		return
	}
	if len(d.slow) >= maxSlow { // most of them will be gone by now
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
	seqs := make([]int64, 0, len(d.serving))
	for seq := range d.serving {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	return seqs
}
