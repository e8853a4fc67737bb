package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
)

// hanging is a dispatcher whose attempts last until they are ended, and a clock.
type hanging struct {
	*dispatcher
	at      time.Time
	started chan *job
	ended   chan *job
}

func newHanging(limits dispatchLimits) *hanging {
	h := &hanging{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	h.started, h.ended = make(chan *job, 2000), make(chan *job, 2000)
	h.dispatcher = newDispatcher(limits, func() time.Time { return h.at })
	return h
}

// pass moves the clock, as the queue finds it when it next claims.
func (h *hanging) pass(d time.Duration) (room int, full []int64) {
	h.mu.Lock()
	h.at = h.at.Add(d)
	h.mu.Unlock()
	return h.room()
}

// add adds a job of an account for each of the domains d0, d1 and so on.
func (h *hanging) add(account int64, n, rcpts int) {
	var jobs []*job
	for i := range n {
		j := &job{dest: dest{kind: toMX, domain: fmt.Sprintf("a%d-d%d.example", account, i)}, rcpts: make([]store.Claimed, rcpts)}
		for i := range j.rcpts {
			j.rcpts[i].AccountID = account
		}
		j.claim = newClaim(nil, h.at.Add(time.Hour))
		ctx, cancel := context.WithCancelCause(context.Background())
		j.attempt = func() outcome {
			j.claim.begin(cancel)
			h.started <- j
			<-ctx.Done()
			return sameOutcome(j, result{response: outbound.FaultOf(ctx, outbound.Endpoint{Host: "mx.example"}, errors.New("closed")).Response})
		}
		j.record = func(outcome) { h.ended <- j }
		jobs = append(jobs, j)
	}
	h.dispatcher.add(jobs)
}

// take waits for n jobs of a channel and counts them by account.
func take(jobs chan *job, n int) map[int64]int {
	got := map[int64]int{}
	for range n {
		got[(<-jobs).account()]++
	}
	return got
}

// finish ends all attempts.
func (h *hanging) finish() {
	go func() {
		for j := range h.started {
			j.claim.end()
		}
	}()
	for _, j := range h.held() {
		j.claim.end()
	}
	h.wait()
	close(h.started)
}

// However many places hang, there is one for an account that uses none, up to the
// sixth account. An account alone has all the usual places.
func TestAccountsLeavePlacesForOthers(t *testing.T) {
	t.Parallel()
	h := newHanging(dispatchLimits{domain: 5, network: 50, spare: 25, claimed: 1000})
	h.add(1, 100, 1)
	for account, want := range []int{50, 13, 6, 3, 2, 1} {
		if account > 0 {
			h.add(int64(account+1), 20, 1)
		}
		take(h.started, want)
		h.mu.Lock()
		if got := h.accounts[int64(account+1)]; got != want {
			t.Errorf("account %d has %d places, want %d", account+1, got, want)
		}
		h.mu.Unlock()
	}
	h.finish()
	if len(h.accounts) != 0 || len(h.dests) != 0 || h.claimed != 0 {
		t.Errorf("at the end, %v have places, %d destinations and %d recipients are left", h.accounts, len(h.dests), h.claimed)
	}
}

// A server that may have the whole message is waited for: sooner or later ended, it
// would be sent again. An attempt that ended hands nothing over.
func TestAttemptDoesNotEndAfterTheMessage(t *testing.T) {
	t.Parallel()
	h := newHanging(dispatchLimits{domain: 5, network: 1, claimed: 1000})
	h.add(1, 1, 1)
	j := <-h.started
	if err := j.claim.hand(); err != nil {
		t.Fatal(err)
	}
	h.add(2, 1, 1)
	h.pass(attemptTime)
	j.claim.mu.Lock()
	if j.claim.cut {
		t.Error("the attempt ended although the server may have the message")
	}
	j.claim.mu.Unlock()
	j.claim.handled()
	h.pass(0)
	take(h.ended, 1)
	if err := j.claim.hand(); !errors.Is(err, errSlow) {
		t.Errorf("the message is handed over after the end: %v", err)
	}
	h.finish()
}

// An attempt ends when its time is over, and looks like a timeout.
func TestAttemptEndsInTime(t *testing.T) {
	t.Parallel()
	h := newHanging(dispatchLimits{domain: 5, network: 5, claimed: 1000})
	h.add(1, 1, 1)
	j := <-h.started
	said := make(chan string, 1)
	j.record = func(o outcome) { said <- o.results[0].response }
	j.data = 60 * slowestRate
	h.pass(attemptTime + 59*time.Second)
	select {
	case <-said:
		t.Error("the attempt ended early")
	default:
	}
	h.pass(time.Second)
	if got := <-said; got != "451 4.4.1 mx.example: timed out" {
		t.Errorf("the response is %q", got)
	}
	h.wait()
}
