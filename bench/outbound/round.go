package main

import (
	"context"
	"fmt"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// The measured figures.
const (
	accepted figure = iota // submitted one by one, while the server is blocked
	drained                // delivered while nothing is submitted
	batched                // recipients, submitted in batches while the server is blocked
	endToEnd               // submitted one by one, until the server has the last
	figures                // number of figures
)

type figure int

var names = [figures]figure{accepted, drained, batched, endToEnd}

func (f figure) String() string {
	return [...]string{"accepted", "drained", "batch recipients", "end to end"}[f]
}

// outcome is the result of one figure in one round.
type outcome struct {
	rate float64       // per second; 0 if it was not measured
	cpu  time.Duration // of the target, per message
}

func (o outcome) String() string {
	switch {
	case o.rate == 0:
		return "-"
	case o.cpu == 0:
		return fmt.Sprintf("%.0f", o.rate)
	}
	return fmt.Sprintf("%.0f, %d µs", o.rate, o.cpu/time.Microsecond)
}

// ratio compares the rates of two targets.
type ratio float64

func (r ratio) String() string {
	if r == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(r))
}

// target is a way into the service.
type target struct {
	name, address string
	login         bool // over SMTP
	service       *harness.Service
	// send sends one message; batch sends batchSize, and may be nil.
	send, batch func(*client) error
	rounds      [][figures]outcome
}

func (t *target) medians() (out [figures]outcome) {
	for f := range figures {
		out[f] = harness.Median(t.rounds, func(r [figures]outcome) float64 { return r[f].rate })[f]
	}
	return out
}

// mostWait is how long the server waits for what was accepted.
const mostWait = 5 * time.Minute

// round measures each figure once with n messages.
func (t *target) round(ctx context.Context, s *harness.Sink, n int) (out [figures]outcome, err error) {
	clock := func(f figure, work ...func() error) {
		begin, used := time.Now(), t.service.CPU()
		for _, step := range work {
			if err == nil {
				err = step()
			}
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", f, err)
		}
		out[f] = outcome{float64(n) / time.Since(begin).Seconds(), (t.service.CPU() - used) / time.Duration(n)}
	}
	one := func() error { return t.share(ctx, n, t.send) }
	arrived := func() error { return arrive(ctx, s, n) }
	blocked := func(f figure, work func() error) {
		unblock := s.Block()
		defer unblock()
		clock(f, work)
	}
	blocked(accepted, one)
	clock(drained, arrived)
	if t.batch != nil && err == nil {
		blocked(batched, func() error { return t.share(ctx, n/batchSize, t.batch) })
		if err == nil {
			err = arrived()
		}
	}
	clock(endToEnd, one, arrived)
	return out, err
}

// arrive waits until n messages have arrived, and forgets them. More are an error, because
// a message was sent twice.
func arrive(ctx context.Context, s *harness.Sink, n int) error {
	ctx, cancel := context.WithTimeout(ctx, mostWait)
	defer cancel()
	for s.Messages.Load() < int64(n) && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if have := s.Messages.Swap(0); have != int64(n) {
		return fmt.Errorf("%d messages have arrived, want %d", have, n)
	}
	return nil
}
