package main

import (
	"context"
	"fmt"
	"time"
)

// figure is one of the things that are measured.
type figure int

const (
	accepted figure = iota // handed in one by one, while the server takes nothing
	drained                // those going out, while nothing is handed in
	batched                // recipients, handed in by batches while the server takes nothing
	endToEnd               // handed in one by one, until the server has the last
	figures                // how many there are
)

func (f figure) String() string {
	return [...]string{"accepted", "drained", "batch recipients", "end to end"}[f]
}

// outcome is what came of one figure in one round.
type outcome struct {
	rate float64       // a second; 0 when it was not measured
	cpu  time.Duration // of the target, for each mail
}

// patience is how long the server waits for what was accepted.
const patience = 5 * time.Minute

// round measures each figure once with n mails.
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
	s.hold()
	defer s.release()
	if err := clock(accepted, func() error { return t.send(ctx, n, o.conns, false) }); err != nil {
		return out, err
	}
	s.release()
	if err := clock(drained, func() error { return s.wait(ctx, n) }); err != nil {
		return out, err
	}
	if t.canBatch() {
		s.reset()
		s.hold()
		if err := clock(batched, func() error { return t.send(ctx, n, o.conns, true) }); err != nil {
			return out, err
		}
		s.release()
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
