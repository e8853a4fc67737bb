package faults_test

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// killer repeatedly crashes an installation while clients work on it, each time after
// a random number of their steps and up to some milliseconds more.
type killer struct {
	in    *installation
	rng   *rand.Rand
	steps int // of clients between two kills, on average

	// most is how long after the chosen step a kill may come, in nanoseconds.
	most atomic.Int64

	left   atomic.Int64 // steps until the next kill
	strike chan struct{}
	kills  int
}

// mostDelay is how long after the chosen step a kill may come unless the clients set
// another time: longer than a commit takes.
const mostDelay = 4 * time.Millisecond

func newKiller(t *testing.T, in *installation, steps int) *killer {
	k := &killer{in: in, rng: randomness(t), steps: steps, strike: make(chan struct{}, 1)}
	k.most.Store(int64(mostDelay))
	k.arm()
	return k
}

func (k *killer) arm() { k.left.Store(1 + k.rng.Int64N(2*int64(k.steps))) }

// step must be called by clients at every step that they take.
func (k *killer) step() {
	if k.left.Add(-1) == 0 {
		k.strike <- struct{}{}
	}
}

// run crashes the installation until enough is true, and restarts it each time. It
// calls down before the restart, while nothing runs. It leaves a node running.
func (k *killer) run(ctx context.Context, enough func() bool, down func()) {
	for !enough() {
		select {
		case <-k.strike:
		case <-ctx.Done(): // the clients have stopped
			return
		}
		select {
		case <-time.After(upTo(k.rng, time.Duration(k.most.Load()))):
		case <-ctx.Done():
		}
		k.in.crash()
		k.kills++
		down()
		k.arm()
		k.in.start()
	}
}

// underKills runs n clients until enough is true, and crashes the installation
// meanwhile. It returns the first error of a client.
func (k *killer) underKills(t *testing.T, n int, enough func() bool, down func(), client func(ctx context.Context, i int) error) {
	t.Helper()
	ctx, done := context.WithCancel(t.Context())
	defer done()
	clients, working := errgroup.WithContext(ctx)
	for i := range n {
		clients.Go(func() error { return client(working, i) })
	}
	k.run(working, enough, down)
	done()
	if err := clients.Wait(); err != nil && t.Context().Err() == nil {
		t.Fatal(err)
	}
}
