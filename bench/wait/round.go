package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// inbox is the inbox of one waiter.
type inbox struct {
	harness.Inbox
	last string // id of the last message that a wait returned
}

// round starts all waits, sends one message to each inbox, and returns the time from
// sending to the end of each wait.
func round(ctx context.Context, o options, a client, s *senders, boxes []*inbox, n int) (samples, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		waiting sync.WaitGroup
		sent    = make([]time.Time, len(boxes))
		ended   = make([]time.Time, len(boxes))
	)
	subject := func(i int) string { return fmt.Sprintf("round %d of waiter %d", n, i) }
	for i, box := range boxes {
		waiting.Go(func() {
			got, err := a.wait(ctx, box)
			ended[i] = time.Now()
			if err == nil && got != subject(i) {
				err = fmt.Errorf("waiter %d got the message %q", i, got)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	// Without this pause the message could arrive before its wait.
	if err := sleep(ctx, o.settle); err == nil {
		if err := s.sendAll(ctx, boxes, subject, sent); err != nil {
			cancel(err)
		}
	}
	waiting.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	took := make(samples, len(boxes))
	for i := range boxes {
		took[i] = ended[i].Sub(sent[i])
		if took[i] <= 0 {
			return nil, errors.New("a wait returned before its message was sent")
		}
	}
	return took, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
