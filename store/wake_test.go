package store_test

import (
	"errors"
	"fmt"
	"runtime"
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
	for e, rounds := range map[storetest.Engine]int{storetest.SQLite: wakeRounds, storetest.PostgreSQL: wakeRounds / 4} {
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

func TestCloseWakesAllWaits(t *testing.T) {
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

// arrivals are new messages and the filters that find them.
func arrivals(in store.Inbox) (messages []func(*store.NewMessage), filters map[string]store.MessageFilter) {
	messages = []func(*store.NewMessage){
		func(m *store.NewMessage) { m.FromEmail, m.Subject = "ann@a.example", "your code is ready" },
		func(m *store.NewMessage) {
			m.FromEmail, m.Subject, m.HasCode = "no_reply@mail.b.example", "100% \\ off", true
		},
		func(m *store.NewMessage) {
			m.FromEmail, m.Subject, m.HasLink = "noxreply@b.example", "ünïcode_", true
		},
		func(m *store.NewMessage) { m.FromEmail, m.Subject = "bé@b.example", "" },
		func(m *store.NewMessage) { m.FromEmail, m.Subject = "", "a\x00b" },
	}
	f := store.MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq}
	filters = map[string]store.MessageFilter{"all": f}
	for _, from := range []string{"%", "ann@a.example", "%@b.example", "%@%.b.example", `no\_reply@%`, "no_reply@%", "b_@%", "%é%", "%%x%%", "_", "%b.example_", "a", `%\%%`} {
		g := f
		g.FromLike = from
		filters["from "+from] = g
	}
	for _, subject := range []string{"code", "%", "_", "\\", "ï", "ready", "readyy", "a\x00b", "ab"} {
		g := f
		g.Subject = subject
		filters["subject "+subject] = g
	}
	code, link, out, in2, early, late := f, f, f, f, f, f
	code.HasCode, link.HasLink, out.Direction, in2.Direction = true, true, store.DirectionOut, store.DirectionIn
	early.Since, late.Since = &store.Time{Time: time.Unix(0, 0)}, &store.Time{Time: time.Now().AddDate(100, 0, 0)}
	for name, g := range map[string]store.MessageFilter{"code": code, "link": link, "out": out, "in": in2, "early": early, "late": late} {
		filters[name] = g
	}
	return messages, filters
}

// woken reports whether a wake-up waits in w, and takes it.
func woken(w *store.Wake) bool {
	select {
	case <-w.C:
		return true
	default:
		return false
	}
}

// A message wakes exactly those filters that a query with the filter finds it with. On
// PostgreSQL the log of events wakes some once more.
func TestAMessageWakesTheFiltersThatFindIt(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		messages, filters := arrivals(in)
		wakes := map[string]*store.Wake{}
		for name, f := range filters {
			wakes[name] = s.WakeMatching(f)
			defer wakes[name].Stop()
		}
		plain := s.WakeInbox(in.Seq)
		defer plain.Stop()
		hits := 0
		for i, edit := range messages {
			m := storetest.Received(t, s, in, edit)
			for name, f := range filters {
				f.After = before(m)
				_, err := s.FirstMessage(t.Context(), f)
				if err != nil && !errors.Is(err, store.ErrNotFound) {
					t.Fatal(err)
				}
				got := woken(wakes[name])
				if found := err == nil; got != found && (found || s.Engine() == "sqlite") {
					t.Errorf("message %d, filter %q: woken %v, found by a query %v", i, name, got, found)
				}
				if got {
					hits++
				}
			}
			if !woken(plain) {
				t.Errorf("message %d does not wake a subscription without a filter", i)
			}
		}
		if hits < 30 {
			t.Errorf("only %d wake-ups: the filters match too little to prove anything", hits)
		}
		if _, err := s.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
			t.Fatal(err)
		}
		for name, w := range wakes {
			if !woken(w) {
				t.Errorf("filter %q: not woken when its inbox is deleted", name)
			}
		}
	})
}

// before is a place just before a message.
func before(m store.Message) *store.Place {
	return &store.Place{CreatedAt: m.CreatedAt, Seq: m.Seq - 1}
}

// Another node reads a new message once for all filters, and wakes those that match.
func TestAnotherNodeWakesTheFiltersThatMatch(t *testing.T) {
	t.Parallel()
	const others = 200
	a, b, _ := nodes(t)
	in := storetest.Inbox(t, a)
	subject := func(s string) *store.Wake {
		return b.WakeMatching(store.MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq, Subject: s})
	}
	want := subject("wanted")
	defer want.Stop()
	rest := make([]*store.Wake, others)
	for i := range rest {
		rest[i] = subject(fmt.Sprintf("other %d", i))
		defer rest[i].Stop()
	}
	await := func(w *store.Wake, what string) {
		t.Helper()
		select {
		case <-w.C:
		case <-time.After(tooLong):
			t.Fatal(what)
		}
	}
	// The node wakes all when it begins to follow the log: until then, and for two
	// messages more.
	for range 3 {
		storetest.Received(t, a, in, func(m *store.NewMessage) { m.Subject = "this is wanted" })
		await(want, "the matching filter sleeps on")
	}
	for _, w := range rest {
		woken(w)
	}
	storetest.Received(t, a, in, func(m *store.NewMessage) { m.Subject = "this is wanted" })
	await(want, "the matching filter sleeps on")
	for i, w := range rest {
		if woken(w) {
			t.Errorf("filter %d was woken by a message of another subject", i)
		}
	}
	if _, err := a.DeleteInbox(t.Context(), in.AccountID, in.ID); err != nil {
		t.Fatal(err)
	}
	await(want, "the filter sleeps on although another node has deleted its inbox")
}
