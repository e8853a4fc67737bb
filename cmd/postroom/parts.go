package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// stopTimeout bounds the shutdown of the parts, and closeTimeout the closing of
// the database after it: 30 seconds together.
const (
	stopTimeout  = 20 * time.Second
	closeTimeout = 10 * time.Second // SQLite moves its log into the database
)

// part is a component that runs as long as the node.
type part struct {
	name string
	// run blocks until the part has stopped.
	run func() error
	// stop makes run return. It may wait for that until ctx ends.
	stop func(ctx context.Context) error
}

// worker returns a part that stops when its context ends.
func worker(name string, run func(context.Context) error) part {
	ctx, cancel := context.WithCancel(context.Background())
	return part{
		name: name,
		run:  func() error { return run(ctx) },
		stop: func(context.Context) error { cancel(); return nil },
	}
}

// runParts runs all parts, and calls begun when they run. When ctx ends, a part
// returns or begun fails, it stops all parts at the same time: each finishes its
// current work and accepts no more. Work that the queue has not started stays in
// the database for the next start. The error is nil if ctx ended and every part
// stopped within timeout.
func runParts(ctx context.Context, parts []part, timeout time.Duration, begun func() error) error {
	ended := make(chan error, len(parts))
	for _, p := range parts {
		go func() {
			if err := p.run(); err != nil {
				ended <- fmt.Errorf("%s: %w", p.name, err)
			} else {
				ended <- nil
			}
		}()
	}
	running := len(parts)
	err := begun()
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-ended:
			running--
			if err == nil && ctx.Err() == nil {
				err = errors.New("a part of the service stopped unexpectedly")
			}
		}
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	errs := append([]error{err}, stopAll(stopping, parts)...)
	for ; running > 0; running-- {
		select {
		case err := <-ended:
			errs = append(errs, err)
		case <-stopping.Done():
			return errors.Join(append(errs, fmt.Errorf("%d of the %d parts did not stop in time: %w", running, len(parts), stopping.Err()))...)
		}
	}
	return errors.Join(errs...)
}

func stopAll(ctx context.Context, parts []part) []error {
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, p := range parts {
		all.Go(func() {
			if err := p.stop(ctx); err != nil {
				errs[i] = fmt.Errorf("stop the %s: %w", p.name, err)
			}
		})
	}
	all.Wait()
	return errs
}
