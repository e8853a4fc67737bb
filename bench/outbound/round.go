package main

import (
	"context"
	"fmt"
	"time"
)

// figure is one of the measured values.
type figure int

const (
	accepted figure = iota // submitted one by one, while the server is blocked
	drained                // delivered while nothing is submitted
	batched                // recipients, submitted in batches while the server is blocked
	endToEnd               // submitted one by one, until the server has the last
	figures                // number of figures
)

func (f figure) String() string {
	return [...]string{"accepted", "drained", "batch recipients", "end to end"}[f]
}

// outcome is the result of one figure in one round.
type outcome struct {
	rate float64       // per second; 0 if it was not measured
	cpu  time.Duration // of the target, per message
}

// mostWait is how long the server waits for what was accepted.
const mostWait = 5 * time.Minute

// round measures each figure once with n messages.
func round(ctx context.Context, o options, s *sink, t target, n int) ([figures]outcome, error) {
	var out [figures]outcome
	clock := func(f figure, work func() error) error {
		begin, used := time.Now(), t.cpu()
		if err := work(); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
		out[f] = outcome{float64(n) / time.Since(begin).Seconds(), (t.cpu() - used) / time.Duration(n)}
		return nil
	}
	s.reset()
	s.block()
	defer s.unblock()
	if err := clock(accepted, func() error { return t.send(ctx, n, o.conns, false) }); err != nil {
		return out, err
	}
	s.unblock()
	if err := clock(drained, func() error { return s.wait(ctx, n) }); err != nil {
		return out, err
	}
	if t.canBatch() {
		s.reset()
		s.block()
		if err := clock(batched, func() error { return t.send(ctx, n, o.conns, true) }); err != nil {
			return out, err
		}
		s.unblock()
		if err := s.wait(ctx, n); err != nil {
			return out, err
		}
	}
	s.reset()
	return out, clock(endToEnd, func() error {
		if err := t.send(ctx, n, o.conns, false); err != nil {
			return err
		}
		return s.wait(ctx, n)
	})
}
