// Package work has the loops of background work: rounds at an interval, rounds
// that are due at a known time, and the end of both at shutdown. Its Dispatcher
// does work that nodes claim with leases, fair by key and by account.
//
// Every loop runs in the goroutine of its caller and returns when its context
// ends. A round gets the same context; it logs its own errors.
package work

import (
	"context"
	"math/rand/v2"
	"time"
)

// Every runs round at once and then at each interval, until ctx ends. The time
// from the start of one round to the next is up to a tenth shorter than interval,
// so that nodes that start together do not work at the same moments. After a
// round that takes longer than interval, the next one follows at once.
func Every(ctx context.Context, interval time.Duration, round func(context.Context)) {
	Due(ctx, func(ctx context.Context) time.Duration {
		began := time.Now()
		round(ctx)
		return jitter(interval) - time.Since(began)
	}, nil, nil)
}

// jitter shortens d by up to a tenth.
func jitter(d time.Duration) time.Duration {
	d = max(d, time.Millisecond)
	return d - rand.N(d/10+1) //nolint:gosec // not a secret
}

// Due runs round at once and then whenever it is due, until ctx ends. round
// returns the time until the next round, which starts earlier if kick or also
// receives. At 0 or less it starts at once. Each channel may be nil, and is
// ignored once it is closed.
func Due(ctx context.Context, round func(context.Context) time.Duration, kick, also <-chan struct{}) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := round(ctx)
		if wait <= 0 {
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case _, open := <-kick:
			if !open {
				kick = nil
			}
		case _, open := <-also:
			if !open {
				also = nil
			}
		}
	}
}

// OnKick runs round after each kick, until ctx ends, and at least interval after the
// previous one.
func OnKick(ctx context.Context, kick <-chan struct{}, interval time.Duration, round func(context.Context)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-kick:
		}
		round(ctx)
		if !Pause(ctx, interval, nil) {
			return
		}
	}
}

// Pause waits for d, or less if kick receives or ctx ends. kick may be nil. It
// reports whether ctx is still active.
func Pause(ctx context.Context, d time.Duration, kick <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-kick:
	}
	return ctx.Err() == nil
}

// Drain waits until wait returns. If that takes longer than grace, it calls
// breakOff, which must make wait return, and goes on waiting.
func Drain(grace time.Duration, wait, breakOff func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		wait()
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		breakOff()
		<-done
	}
}
