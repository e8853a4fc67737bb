package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// inbox is one waiter's.
type inbox struct {
	id, address string
	last        string // id of the newest message that was waited for
}

// round has everybody wait, sends everybody a mail, and returns how long each
// of them took.
func round(ctx context.Context, o options, a *api, s *senders, boxes []*inbox, n int) (samples, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		waiting  sync.WaitGroup
		sent     = make([]time.Time, len(boxes))
		answered = make([]time.Time, len(boxes))
	)
	subject := func(i int) string { return fmt.Sprintf("round %d of waiter %d", n, i) }
	for i, box := range boxes {
		waiting.Go(func() {
			got, err := a.wait(ctx, box)
			answered[i] = time.Now()
			if err == nil && got != subject(i) {
				err = fmt.Errorf("waiter %d got the mail %q", i, got)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	// Without this the mail could be first, and nobody would have waited.
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
		took[i] = answered[i].Sub(sent[i])
		if took[i] <= 0 {
			return nil, errors.New("a wait was answered before its mail was sent")
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
