package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"
)

// bench is a dispatcher whose attempts last until they end or are ended, and its clock.
type bench struct {
	*Dispatcher
	at      time.Time
	started chan *Job
	ended   chan *Job
	finish  chan struct{} // ends one attempt
}

func newBench(cfg DispatcherConfig) *bench {
	b := &bench{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), started: make(chan *Job, 2000), ended: make(chan *Job, 2000), finish: make(chan struct{})}
	cfg.Now, cfg.Lease, cfg.Claimed, cfg.Log = func() time.Time { return b.at }, time.Hour, 1000, slog.New(slog.DiscardHandler)
	if cfg.Limit == nil {
		cfg.Limit = func(any) (int, bool) { return 5, false }
	}
	b.Dispatcher = NewDispatcher(cfg)
	return b
}

// pass moves the clock, as the dispatcher finds it when it next claims.
func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	b.at = b.at.Add(d)
	b.mu.Unlock()
	b.room()
}

// give adds jobs of an account.
func (b *bench) give(account int64, keys ...string) {
	var jobs []*Job
	for _, key := range keys {
		j := &Job{Key: key, Names: []any{key}, Account: account, MaxTime: 25 * time.Minute, Leases: []Lease{{Row: 1, Fence: 1}}}
		j.Attempt = func(ctx context.Context) func(context.Context) {
			b.started <- j
			select {
			case <-ctx.Done():
			case <-b.finish:
			}
			return func(context.Context) { b.ended <- j }
		}
		j.hold(context.Background(), b.cfg.Now, b.at.Add(24*time.Hour))
		jobs = append(jobs, j)
	}
	b.add(jobs)
}

func keys(account, n int) (keys []string) {
	for i := range n {
		keys = append(keys, fmt.Sprintf("a%d-d%d.example", account, i))
	}
	return keys
}

// take waits for n jobs of a channel.
func take(jobs chan *Job, n int) (got []*Job) {
	for range n {
		got = append(got, <-jobs)
	}
	return got
}

func (b *bench) wantNoneLeft(t *testing.T) {
	t.Helper()
	close(b.finish)
	b.jobs.Wait()
	if len(b.accounts)+len(b.keys)+len(b.lines)+len(b.held)+b.waiting+b.recording != 0 {
		t.Errorf("at the end, %d accounts, %d keys, %d lines, %d jobs and %d rows are left", len(b.accounts), len(b.keys), len(b.lines), len(b.held), b.waiting)
	}
}

// However many places hang, there is one for an account that uses none, up to the
// sixth account. An account alone has all the usual places.
func TestAccountsLeavePlacesForOthers(t *testing.T) {
	t.Parallel()
	b := newBench(DispatcherConfig{Places: 50, Spare: 25})
	b.give(0, keys(0, 100)...)
	for account, want := range []int{50, 13, 6, 3, 2, 1} {
		if account > 0 {
			b.give(int64(account), keys(account, 20)...)
		}
		take(b.started, want)
		b.mu.Lock()
		if got := b.accounts[int64(account)].running; got != want {
			t.Errorf("account %d has %d places, want %d", account, got, want)
		}
		b.mu.Unlock()
	}
	b.wantNoneLeft(t)
}

// The key and account that was served least recently comes first: a long backlog
// delays no other.
func TestKeysAndAccountsTakeTurns(t *testing.T) {
	t.Parallel()
	b := newBench(DispatcherConfig{Places: 1, Spare: 0})
	b.give(1, "a", "a", "a", "b", "b")
	b.give(2, "a", "a")
	var got []string
	for range 7 {
		j := (<-b.started)
		got = append(got, fmt.Sprint(j.Account, j.Key))
		b.finish <- struct{}{}
	}
	want := []string{"1a", "1b", "1a", "2a", "1b", "1a", "2a"}
	if !slices.Equal(got, want) {
		t.Errorf("started %v, want %v", got, want)
	}
	b.wantNoneLeft(t)
}

// Keys that occupy their places for long have at most half of an account's.
func TestBadKeysTakeHalfOfThePlaces(t *testing.T) {
	t.Parallel()
	b := newBench(DispatcherConfig{Places: 4, Limit: func(key any) (int, bool) { return 5, key != "good" }})
	b.give(1, keys(1, 10)...)
	take(b.started, 2)
	b.give(1, "good", "good")
	for _, j := range take(b.started, 2) {
		if j.Key != "good" {
			t.Errorf("a third bad key has a place: %v", j.Key)
		}
	}
	b.wantNoneLeft(t)
}

// While results are recorded the places have work, but no more results wait for that
// than there are places: those of a process that dies are repeated.
func TestPlacesAreFreeWhileResultsAreRecorded(t *testing.T) {
	t.Parallel()
	const places = 3
	b := newBench(DispatcherConfig{Places: places, Limit: func(any) (int, bool) { return 1, false }})
	attempted, recorded := make(chan struct{}), make(chan struct{})
	var jobs []*Job
	for range 10 {
		j := &Job{Key: "relay", Attempt: func(context.Context) func(context.Context) {
			attempted <- struct{}{}
			return func(context.Context) { <-recorded }
		}}
		j.hold(context.Background(), b.cfg.Now, b.at.Add(time.Hour))
		jobs = append(jobs, j)
	}
	b.add(jobs)
	for range places + 1 { // the last one keeps its place
		<-attempted
	}
	select {
	case <-attempted:
		t.Errorf("an attempt is made while %d results wait to be recorded", places+1)
	case recorded <- struct{}{}:
	}
	go func() {
		for range len(jobs) - 1 {
			recorded <- struct{}{}
		}
	}()
	for range len(jobs) - places - 1 {
		<-attempted
	}
	b.wantNoneLeft(t)
}

// While an account waits for its first place, an attempt that has taken a minute ends:
// one of the account that has the most places.
func TestSlowAttemptsEndForAccountsThatWait(t *testing.T) {
	t.Parallel()
	b := newBench(DispatcherConfig{Places: 2})
	b.give(1, keys(1, 2)...)
	take(b.started, 2)
	b.give(2, keys(2, 1)...)
	b.pass(crowdedTime - time.Second)
	select {
	case j := <-b.ended:
		t.Fatalf("the attempt of account %d ended early", j.Account)
	default:
	}
	b.pass(time.Second)
	if j := take(b.ended, 1)[0]; j.Account != 1 {
		t.Errorf("the attempt of account %d ended", j.Account)
	}
	if j := take(b.started, 1)[0]; j.Account != 2 {
		t.Errorf("the place went to account %d", j.Account)
	}
	b.wantNoneLeft(t)
}

// An attempt ends when its time is over, but not while the other side may have all of
// it: it would be repeated. An attempt that ended hands nothing over.
func TestAttemptEndsInTime(t *testing.T) {
	t.Parallel()
	b := newBench(DispatcherConfig{Places: 1})
	b.give(1, "a")
	j := <-b.started
	if err := j.Hand(); err != nil {
		t.Fatal(err)
	}
	b.pass(j.MaxTime)
	if ended, _ := j.mayEnd(); ended {
		t.Error("the attempt ended although the other side may have all of it")
	}
	j.Handled()
	b.pass(0)
	take(b.ended, 1)
	if err := j.Hand(); !errors.Is(err, ErrSlow) {
		t.Errorf("the work is handed over after the end: %v", err)
	}
	b.wantNoneLeft(t)
}

// A job whose lease is lost is broken off, one whose lease has ended does not begin, and
// the end of the dispatcher releases those that wait.
func TestLeases(t *testing.T) {
	t.Parallel()
	var lost []Lease
	b := newBench(DispatcherConfig{Places: 1, Renew: func(context.Context, []Lease) ([]Lease, error) { return lost, nil }})
	b.give(1, "a")
	j := <-b.started
	b.renew(t.Context())
	if !j.Ours() {
		t.Error("a renewed lease is over")
	}
	lost = j.Leases
	b.renew(t.Context())
	take(b.ended, 1)
	if j.Ours() {
		t.Error("a lost lease is ours")
	}
	b.jobs.Wait()

	b.give(1, "a")
	b.give(1, "late", "waits")
	<-b.started
	b.lines[0].jobs[0].until = b.at
	b.finish <- struct{}{} // then the late one is left
	take(b.ended, 1)
	if j := <-b.started; j.Key != "waits" {
		t.Errorf("%v began although its lease is over", j.Key)
	}
	b.give(1, "waits")
	released := make(chan struct{})
	b.mu.Lock()
	b.lines[0].jobs[0].Release = func(context.Context) { close(released) }
	b.mu.Unlock()
	b.releaseWaiting(t.Context())
	<-released
	close(b.finish)
	b.jobs.Wait()
}
