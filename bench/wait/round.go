package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/postroom/postroom/bench/harness"
)

// bench is a run with its inboxes and SMTP connections.
type bench struct {
	client *harness.Client
	boxes  []harness.Inbox
	last   []string // ids of the last messages that waits returned
	body   string
	conns  []*harness.Sender // opened when they are used first
}

// round starts all waits, sends one message to each inbox, and returns the time from
// sending to the end of each wait.
func (b *bench) round(ctx context.Context, n int) (harness.Times, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var waiting sync.WaitGroup
	sent, ended := make([]time.Time, len(b.boxes)), make([]time.Time, len(b.boxes))
	for i := range b.boxes {
		waiting.Go(func() {
			got, err := b.wait(ctx, i)
			ended[i] = time.Now()
			if err == nil && got != subject(n, i) {
				err = fmt.Errorf("waiter %d got the message %q", i, got)
			}
			if err != nil {
				cancel(err)
			}
		})
	}
	// Without this pause the message could arrive before its wait.
	if err := sleep(ctx, *settle); err == nil {
		if err := b.send(ctx, n, sent); err != nil {
			cancel(err)
		}
	}
	waiting.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	took := make(harness.Times, len(b.boxes))
	for i := range took {
		if took[i] = ended[i].Sub(sent[i]); took[i] <= 0 {
			return nil, errors.New("a wait returned before its message was sent")
		}
	}
	return took, nil
}

func subject(round, waiter int) string { return fmt.Sprintf("round %d of waiter %d", round, waiter) }

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits for the next message in an inbox, and returns its subject.
func (b *bench) wait(ctx context.Context, i int) (string, error) {
	q := url.Values{"timeout": {fmt.Sprint(waitSeconds)}}
	if b.last[i] != "" {
		q.Set("after", b.last[i])
	}
	var got struct{ Message *struct{ ID, Subject string } }
	if err := b.client.Call(ctx, http.MethodGet, "/v1/inboxes/"+b.boxes[i].ID+"/messages/wait?"+q.Encode(), nil, &got); err != nil {
		return "", err
	}
	if got.Message == nil {
		return "", fmt.Errorf("lost: no message to %s within %d seconds", b.boxes[i].Address, waitSeconds)
	}
	b.last[i] = got.Message.ID
	return got.Message.Subject, nil
}

// send sends one message to each inbox, over all connections and at the rate of -pace,
// and records when each began. An envelope goes in one packet (PIPELINING, RFC 2920).
func (b *bench) send(ctx context.Context, round int, began []time.Time) error {
	due := make(chan int, len(b.boxes))
	return harness.Parallel(len(b.conns)+1, func(k int) error {
		if k == len(b.conns) {
			defer close(due)
			for i, start := 0, time.Now(); i < len(b.boxes); i++ {
				if *perSecond > 0 {
					if err := sleep(ctx, time.Until(start.Add(time.Duration(i)*time.Second/time.Duration(*perSecond)))); err != nil {
						return err
					}
				}
				due <- i // the buffer has room for all
			}
			return nil
		}
		for i := range due {
			to := b.boxes[i]
			envelope := "MAIL FROM:<bench@example.org>\r\nRCPT TO:<" + to.Address + ">\r\nDATA\r\n"
			message := fmt.Sprintf("From: bench@example.org\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: <%s.%d@example.org>\r\n\r\n%s.\r\n",
				to.Address, subject(round, i), to.ID, time.Now().UnixNano(), b.body)
			if !*connect && b.conns[k] == nil {
				if err := b.open(ctx, k); err != nil {
					return err
				}
			}
			began[i] = time.Now()
			if *connect {
				if err := b.open(ctx, k); err != nil {
					return err
				}
			}
			if err := errors.Join(b.conns[k].Say([]byte(envelope), 3), b.conns[k].Say([]byte(message), 1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// open opens a connection, in place of the one before.
func (b *bench) open(ctx context.Context, k int) (err error) {
	if b.conns[k] != nil {
		_ = b.conns[k].Close()
	}
	b.conns[k], err = harness.NewSender(ctx, *smtp)
	return err
}

func (b *bench) close() {
	for _, c := range b.conns {
		if c != nil {
			_ = c.Close()
		}
	}
}
