package store_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// tooLong is far beyond what any wake-up may take: every second each node looks
// for itself.
const tooLong = 20 * time.Second

// wait waits as every waiter does: it has subscribed, looks, sleeps, and looks
// again.
func wait(t *testing.T, s *store.Store, w *store.Wake, f store.MessageFilter) store.Message {
	t.Helper()
	give := time.NewTimer(tooLong)
	defer give.Stop()
	for {
		m, err := s.FirstMessage(t.Context(), f)
		if err == nil {
			return m
		}
		if !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
			return m
		}
		select {
		case <-w.C:
		case <-give.C:
			t.Error("a wake-up was lost")
			return m
		}
	}
}

// A message that arrives while its waiter registers must not be missed.
func TestNoWakeUpIsLostInARace(t *testing.T) {
	t.Parallel()
	for e, rounds := range map[storetest.Engine]int{storetest.SQLite: 10_000, storetest.PostgreSQL: 2_000} {
		if raceDetector {
			rounds /= 10
		}
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			s := storetest.Open(t, e)
			account := storetest.Account(t, s).Seq
			const pairs = 16
			var all sync.WaitGroup
			for p := range pairs {
				in := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = account })
				all.Go(func() {
					f := store.MessageFilter{InboxSeq: in.Seq}
					for round := range rounds / pairs {
						if t.Failed() {
							return
						}
						var sender sync.WaitGroup
						sender.Go(func() {
							for range (round*7 + p) % 40 {
								runtime.Gosched()
							}
							storetest.Received(t, s, in)
						})
						wake := s.WakeInbox(in.Seq)
						m := wait(t, s, wake, f)
						wake.Stop()
						sender.Wait()
						f.After = m.Place()
					}
				})
			}
			all.Wait()
		})
	}
}

func TestWakesAreForTheirOwnTopic(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	a, b := storetest.Inbox(t, s), storetest.Inbox(t, s)
	wakeA, wakeB, queue, events := s.WakeInbox(a.Seq), s.WakeInbox(b.Seq), s.WakeQueue(), s.WakeEvents()
	for _, w := range []*store.Wake{wakeA, wakeB, queue, events} {
		defer w.Stop()
	}
	woken := func(w *store.Wake) bool {
		select {
		case <-w.C:
			return true
		default:
			return false
		}
	}
	want := func(what string, inA, inB, inQueue, inEvents bool) {
		t.Helper()
		got := []bool{woken(wakeA), woken(wakeB), woken(queue), woken(events)}
		if want := []bool{inA, inB, inQueue, inEvents}; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: woke [a b queue events] %v, want %v", what, got, want)
		}
	}
	storetest.Received(t, s, a)
	storetest.Received(t, s, a)
	want("two messages came", true, false, false, true)
	want("nothing came", false, false, false, false)
	storetest.Sent(t, s, b, []string{"bob@out.example"})
	want("a message was sent", false, true, true, true)
}

func TestCloseWakesEverybodyAndLeavesNobody(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		var sleepers sync.WaitGroup
		for range 100 {
			wake := s.WakeInbox(in.Seq)
			sleepers.Go(func() {
				<-wake.C
				wake.Stop()
				wake.Stop() // twice is allowed
			})
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		sleepers.Wait()
		late := s.WakeQueue()
		<-late.C // at once
		late.Stop()
		if err := s.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
		_, add := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil)
		_, get := s.Inbox(t.Context(), in.AccountID, in.ID)
		_, create := s.CreateAccount(t.Context(), "late")
		for what, err := range map[string]error{"add": add, "get": get, "create": create, "ping": s.Ping(t.Context())} {
			if !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("%s after close: got %v, want ErrUnavailable", what, err)
			}
		}
	})
}

// nodes opens two nodes on one PostgreSQL.
func nodes(t *testing.T) (a, b *store.Store, cfg store.Config) {
	t.Helper()
	cfg = storetest.Config(t, storetest.PostgreSQL)
	return storetest.OpenConfig(t, cfg), storetest.OpenConfig(t, cfg), cfg
}

func TestAnotherNodeIsWoken(t *testing.T) {
	t.Parallel()
	a, b, _ := nodes(t)
	in := storetest.Inbox(t, a)
	f := store.MessageFilter{InboxSeq: in.Seq}
	var longest time.Duration
	for range 50 {
		wake := b.WakeInbox(in.Seq)
		begin := time.Now()
		storetest.Received(t, a, in)
		m := wait(t, b, wake, f)
		wake.Stop()
		f.After = m.Place()
		longest = max(longest, time.Since(begin))
	}
	t.Logf("the longest wait was %v", longest)

	queue := b.WakeQueue()
	defer queue.Stop()
	storetest.Sent(t, a, in, []string{"bob@out.example"})
	select {
	case <-queue.C:
	case <-time.After(tooLong):
		t.Error("the queue of the other node sleeps on")
	}
}

// The hint may be lost; the look every second may not.
func TestAnotherNodeIsWokenWithoutHints(t *testing.T) {
	t.Parallel()
	a, b, cfg := nodes(t)
	in := storetest.Inbox(t, a)
	f := store.MessageFilter{InboxSeq: in.Seq}
	db := openRaw(t, cfg)
	for range 3 {
		if _, err := db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND query LIKE 'LISTEN%'`); err != nil {
			t.Fatal(err)
		}
		wake := b.WakeInbox(in.Seq)
		storetest.Received(t, a, in)
		m := wait(t, b, wake, f)
		wake.Stop()
		f.After = m.Place()
	}
}

// A number is taken before its transaction commits: an event may appear after
// one with a higher number, and its inbox must still be woken.
func TestAnotherNodeIsWokenForAnEventThatCommitsLate(t *testing.T) {
	t.Parallel()
	a, b, cfg := nodes(t)
	slow, busy := storetest.Inbox(t, a), storetest.Inbox(t, a)
	tx := openRaw(t, cfg).MustBegin()
	defer func() { _ = tx.Rollback() }()
	tx.MustExec(`INSERT INTO settings (name, value) VALUES ('any', 'row')`)
	tx.MustExec(`INSERT INTO events (account_id, inbox_seq, id, type, test_mode, data, created_at)
		VALUES ($1, $2, 'evt_late', 'message.received', false, '{}', 1)`, slow.AccountID, slow.Seq)

	f := store.MessageFilter{InboxSeq: busy.Seq}
	for begin := time.Now(); time.Since(begin) < time.Second; { // the other node sees many higher numbers
		wake := b.WakeInbox(busy.Seq)
		storetest.Received(t, a, busy)
		m := wait(t, b, wake, f)
		wake.Stop()
		f.After = m.Place()
	}
	wake := b.WakeInbox(slow.Seq)
	defer wake.Stop()
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-wake.C:
	case <-time.After(tooLong):
		t.Error("the inbox of the late event sleeps on")
	}
}

// A waiter on the node that stores a message gets it without a look into the
// database, and learns when it has to look.
func TestWakeUpCarriesTheMessages(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite)
	in := storetest.Inbox(t, s)
	w := s.WakeMessages(in.Seq)
	defer w.Stop()
	take := func(wantMissed bool, want ...string) {
		t.Helper()
		<-w.C
		ms, missed := w.Messages()
		var got []string
		for _, m := range ms {
			got = append(got, m.ID)
			if m.Content == nil || m.Content.Raw != nil || m.ThreadID == "" {
				t.Errorf("message %s has no content or thread, or has raw bytes", m.ID)
			}
		}
		if missed != wantMissed || !slices.Equal(got, want) {
			t.Errorf("got %v, missed %v, want %v, %v", got, missed, want, wantMissed)
		}
	}
	if ms, missed := w.Messages(); len(ms) > 0 || !missed {
		t.Errorf("a new subscription has %d messages, missed %v: what came before it is not known", len(ms), missed)
	}
	first, second := storetest.Received(t, s, in), storetest.Received(t, s, in)
	take(false, first.ID, second.ID)

	for range store.MaxCollected + 1 {
		storetest.Received(t, s, in)
	}
	take(true)
	last := storetest.Received(t, s, in)
	take(false, last.ID)

	if _, err := s.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
		t.Fatal(err)
	}
	take(true)
}
