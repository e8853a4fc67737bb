package queue

import (
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
)

// What is remembered of dead domains has an end, and old memories make room for
// new ones (O5).
func TestDeadDestinationsRememberedAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := newDispatcher(dispatchLimits{domain: 5, relay: 5, network: 50, local: 5, claimed: 1000}, func() time.Time { return now })
	fail := func(name string) {
		j := &job{dest: dest{kind: toMX, domain: name}, rcpts: make([]store.Claimed, 1)}
		j.record, j.attempt = recordNothing, then(func() { d.unreachable(j, "451 4.4.1 gone") })
		d.add([]*job{j})
		d.wait()
	}
	for i := range 2 * maxDead {
		fail(fmt.Sprintf("d%d.example", i))
	}
	if n := len(d.dests); n > maxDead+1 {
		t.Errorf("%d dead domains are remembered, want at most %d", n, maxDead)
	}
	now = now.Add(maxBackoff + deadTTL)
	fail("new.example")
	s := d.dests[dest{kind: toMX, domain: "new.example"}]
	if s == nil || !s.held(now) || len(d.dests) != 1 {
		t.Errorf("%d dead domains are remembered, and of the new one %+v", len(d.dests), s)
	}
}

// The pauses of a dead destination double, up to a bound, and each is up to a
// tenth longer or shorter.
func TestPausesOfADeadDestination(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := newDispatcher(dispatchLimits{domain: 5, network: 50, claimed: 1000}, func() time.Time { return now })
	to := dest{kind: toMX, domain: "dead.example"}
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		j := &job{dest: to, rcpts: make([]store.Claimed, 1)}
		j.record, j.attempt = recordNothing, then(func() {
			if _, held := d.givenUp(j); held {
				t.Errorf("pause %d is not over", i)
			}
			d.unreachable(j, "451 4.4.1 gone")
			d.unreachable(j, "451 4.4.1 gone") // of another job at the same time
		})
		d.add([]*job{j})
		d.wait()
		got := d.dests[to].until.Sub(now)
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("pause %d is %s, want about %s", i, got, want)
		}
		now = d.dests[to].until
	}
}

// Dead domains use at most half of the slots of the network.
func TestDeadDestinationsTakeHalfOfTheSlots(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := newDispatcher(dispatchLimits{domain: 5, network: 4, claimed: 1000}, func() time.Time { return now })
	var dead []*job
	release := make(chan struct{})
	for i := range 10 {
		j := &job{dest: dest{kind: toMX, domain: fmt.Sprintf("dead%d.example", i)}, rcpts: make([]store.Claimed, 1)}
		d.dests[j.dest] = &destState{failures: 1, until: now}
		j.record, j.attempt = recordNothing, then(func() { <-release })
		dead = append(dead, j)
	}
	d.add(dead)
	ran := make(chan struct{})
	good := &job{dest: dest{kind: toMX, domain: "good.example"}, rcpts: make([]store.Claimed, 1), record: recordNothing, attempt: then(func() { close(ran) })}
	d.add([]*job{good})
	<-ran
	d.mu.Lock()
	if n := d.probing[0]; n != 2 {
		t.Errorf("%d dead domains are tried at a time, want 2", n)
	}
	d.mu.Unlock()
	close(release)
	d.wait()
}

// then is an attempt with nothing to record.
func then(do func()) func() outcome {
	return func() outcome {
		do()
		return outcome{}
	}
}

func recordNothing(outcome) {}
