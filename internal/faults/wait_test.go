package faults_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
)

// TestWaitNeverMissesARacingMessage begins a wait and a message to the same inbox at
// about the same time, many times. Whichever comes first, the wait returns the
// message. Row H15 of docs/testing.md.
func TestWaitNeverMissesARacingMessage(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		in.start()
		rounds, rng := pick(400, 10_000), randomness(t)
		var names []string
		for i := range racers {
			names = append(names, fmt.Sprintf("racer%d", i))
		}
		r := &races{in: in}
		racing, ctx := errgroup.WithContext(t.Context())
		for _, box := range in.createInboxes(names...) {
			own := rand.New(rand.NewPCG(rng.Uint64(), 0))
			racing.Go(func() error { return r.race(ctx, box, own, rounds/racers) })
		}
		if err := racing.Wait(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d rounds, 0 lost; the wait came before the message %d times, during %d, after %d; it returned %s after both",
			rounds, r.before, r.during, r.after, spread(r.delays))
		if r.before == 0 || r.during == 0 || r.after == 0 {
			t.Error("not all orders were seen")
		}
	})
}

// racers race at the same time.
const racers = 8

// races counts the outcomes of the rounds.
type races struct {
	in *installation

	mu                    sync.Mutex
	before, during, after int
	delays                []time.Duration // from when the message and the wait both existed
}

// race runs rounds on one inbox.
func (r *races) race(ctx context.Context, box inbox, rng *rand.Rand, rounds int) error {
	n := r.in.current()
	api := n.caller()
	defer api.close()
	smtp, err := dialSMTP(ctx, n.smtp)
	if err != nil {
		return err
	}
	defer smtp.close()
	last, took := "", time.Millisecond
	for i := range rounds {
		id := fmt.Sprintf("%s-%d", box.Name, i)
		lag := upTo(rng, 4*took) - 2*took // either may be over before the other begins
		if i%2 == 0 {
			lag = took + upTo(rng, time.Millisecond) - time.Millisecond/2 // about when the message is stored
		}
		if last, took, err = r.round(ctx, api, smtp, box, id, last, lag); err != nil {
			return fmt.Errorf("round %s: %w", id, err)
		}
	}
	return nil
}

// round begins a message and a wait for messages after the message last. The wait
// begins later by lag, which may be negative. It returns the id of the message and how
// long its delivery took.
func (r *races) round(
	ctx context.Context, api *caller, smtp *smtpClient, box inbox, id, last string, lag time.Duration,
) (string, time.Duration, error) {
	query := "/v1/inboxes/" + box.ID + "/messages/wait?timeout=20"
	if last != "" {
		query += "&after=" + last
	}
	var began, done time.Time // of the message
	var res waitResult
	sent := make(chan time.Time, 1) // when the wait was sent
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		wait(ctx, max(0, -lag))
		began = time.Now()
		_, err := smtp.send(newMessage(id, 1<<10, box.Address))
		done = time.Now()
		return err
	})
	both.Go(func() error {
		wait(ctx, max(0, lag))
		return api.call(whenSent(ctx, func() { sent <- time.Now() }), http.StatusOK, &res, http.MethodGet, query, nil)
	})
	err := both.Wait()
	if err == nil && (res.TimedOut || res.Message == nil || res.Message.Subject != id) {
		err = fmt.Errorf("the wait returned %+v, %+v", res, res.Message)
	}
	if err != nil {
		return "", 0, err
	}
	if late := r.note(began, <-sent, done, time.Now()); late > mostLate {
		return "", 0, fmt.Errorf("the wait returned %v after the message was stored: it was not notified", late)
	}
	return res.Message.ID, done.Sub(began), nil
}

// whenSent calls f when the call that is made with the context is on its way.
func whenSent(ctx context.Context, f func()) context.Context {
	var once sync.Once // a call may be sent again on another connection
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { once.Do(f) }})
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// mostLate is how long after the message and the wait both exist the response may come.
// A wait that was not notified checks again only at its timeout.
const mostLate = 10 * time.Second

// note records a round: when its message began, its wait was sent, its message was
// accepted, and both were over. It returns the time of the response after the message
// and the wait both existed.
func (r *races) note(began, sent, done, end time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	there := done
	switch {
	case sent.Before(began):
		r.before++
	case sent.Before(done):
		r.during++
	default:
		r.after++
		there = sent
	}
	r.delays = append(r.delays, end.Sub(there))
	return end.Sub(there)
}

// spread formats the median and the tail of a distribution.
func spread(all []time.Duration) string {
	slices.Sort(all)
	at := func(share float64) float64 { return all[int(share*float64(len(all)-1))].Seconds() * 1e3 }
	return fmt.Sprintf("within %.1f ms (half), %.1f ms (99 %%), %.1f ms (all)", at(0.5), at(0.99), at(1))
}
