package queue

import (
	"fmt"
	"testing"
	"time"
)

// fail runs a job that cannot connect to a domain.
func (d *destinations) fail(domain string, during func(*job)) {
	j := &job{dest: dest{kind: toMX, domain: domain}}
	d.begin(j)
	defer d.end(j)
	during(j)
	d.unreachable(j, "451 4.4.1 gone")
}

// What is remembered of dead domains has an end, and old memories make room for
// new ones (O5).
func TestDeadDestinationsRememberedAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := &destinations{now: func() time.Time { return now }, all: map[dest]*destState{}}
	for i := range 2 * maxDead {
		d.fail(fmt.Sprintf("d%d.example", i), func(*job) {})
	}
	if n := len(d.all); n > maxDead+1 {
		t.Errorf("%d dead domains are remembered, want at most %d", n, maxDead)
	}
	now = now.Add(maxBackoff + deadTTL)
	d.fail("new.example", func(*job) {})
	s := d.all[dest{kind: toMX, domain: "new.example"}]
	if s == nil || !s.held(now) || len(d.all) != 1 {
		t.Errorf("%d dead domains are remembered, and of the new one %+v", len(d.all), s)
	}
}

// The pauses of a dead destination double, up to a bound, and each is up to a
// tenth longer or shorter.
func TestPausesOfADeadDestination(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	d := &destinations{now: func() time.Time { return now }, all: map[dest]*destState{}}
	to := dest{kind: toMX, domain: "dead.example"}
	for i, want := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute, 5 * time.Minute} {
		if i > 0 && !d.dead(to) {
			t.Errorf("before pause %d the destination is not tried by one job alone", i)
		}
		d.fail(to.domain, func(j *job) {
			if _, held := d.givenUp(j); held {
				t.Errorf("pause %d is not over", i)
			}
			d.unreachable(j, "451 4.4.1 gone") // of another job at the same time
		})
		got := d.all[to].until.Sub(now)
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("pause %d is %s, want about %s", i, got, want)
		}
		now = d.all[to].until
	}
}
