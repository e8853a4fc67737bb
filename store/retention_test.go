package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const day = 24 * time.Hour

// keeping is an inbox that keeps mail for so many days.
func keeping(days int) func(*store.Inbox) {
	return func(in *store.Inbox) { in.RetentionDays = days }
}

// withClock runs test on each engine with a clock that stands still.
func withClock(t *testing.T, test func(t *testing.T, s *store.Store, clock *storetest.Clock)) {
	t.Helper()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now())
		cfg.Now = clock.Now
		test(t, storetest.OpenConfig(t, cfg), clock)
	})
}

// expire does all of retention that is due and returns what it removed.
func expire(t *testing.T, s *store.Store) (gone store.Removed) {
	t.Helper()
	for after, next := int64(0), int64(-1); next != 0; after = next {
		var due []int64
		var err error
		if due, next, err = s.InboxesToExpire(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		for _, inbox := range due {
			gone.Add(toTheEnd(t, func() (store.Removed, error) { return s.ExpireInbox(t.Context(), inbox, store.Time{}) }))
		}
	}
	gone.Add(toTheEnd(t, func() (store.Removed, error) { return s.ExpireRecords(t.Context()) }))
	return gone
}

func toTheEnd(t *testing.T, step func() (store.Removed, error)) (gone store.Removed) {
	t.Helper()
	for {
		n, err := step()
		if err != nil {
			t.Fatal(err)
		}
		if n.Nothing() {
			return gone
		}
		gone.Add(n)
	}
}

func wantRemoved(t *testing.T, got, want store.Removed) {
	t.Helper()
	if got != want {
		t.Fatalf("removed %+v, want %+v", got, want)
	}
}

// hasContent reports whether the content of the message is there.
func hasContent(t *testing.T, s *store.Store, m store.Message) bool {
	t.Helper()
	got, err := s.Message(t.Context(), m.AccountID, m.ID)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := s.Raw(t.Context(), m.Seq)
	if err == nil {
		err = raw.Close()
	} else if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if there := got.Content != nil; there != (got.ExpiredAt == nil) || there != (raw != nil) {
		t.Fatalf("content %v, raw %v, expired at %v", there, raw != nil, got.ExpiredAt)
	}
	return got.Content != nil
}

func TestChangedRetentionAppliesToStoredMail(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s, keeping(2))
		set := func(days int) {
			t.Helper()
			_, err := s.UpdateInbox(t.Context(), in.AccountID, in.ID, func(in *store.Inbox) error { in.RetentionDays = days; return nil })
			if err != nil {
				t.Fatal(err)
			}
		}
		first := storetest.Received(t, s, in)
		clock.Add(day)
		second := storetest.Received(t, s, in)
		clock.Add(day - time.Hour)
		set(1)
		wantRemoved(t, expire(t, s), store.Removed{Contents: 1})
		set(30)
		clock.Add(10 * day)
		wantRemoved(t, expire(t, s), store.Removed{})
		if hasContent(t, s, first) || !hasContent(t, s, second) {
			t.Error("the wrong content was deleted")
		}
		set(11)
		wantRemoved(t, expire(t, s), store.Removed{})
		set(10)
		wantRemoved(t, expire(t, s), store.Removed{Contents: 1})
	})
}

// Content accepted with 201 is kept until it is sent, however long that takes.
func TestContentOfQueuedMailWaitsForItsDelivery(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s, keeping(1))
		before := storetest.Received(t, s, in)
		clock.Add(time.Minute)
		queued := storetest.Sent(t, s, in, []string{"bob@out.example", "ann@out.example"})
		clock.Add(time.Minute)
		after := storetest.Received(t, s, in)
		clock.Add(3 * day)
		wantRemoved(t, expire(t, s), store.Removed{Contents: 2})
		if hasContent(t, s, before) || !hasContent(t, s, queued) || hasContent(t, s, after) {
			t.Error("the wrong content was deleted")
		}
		for i, c := range claim(t, s, 2, time.Minute) {
			if i == 1 {
				wantRemoved(t, expire(t, s), store.Removed{})
			}
			deliver(t, s, c)
		}
		wantRemoved(t, expire(t, s), store.Removed{Contents: 1})
		clock.Add(store.RecordTTL)
		wantRemoved(t, expire(t, s), store.Removed{Records: 3})
	})
}

func deliver(t *testing.T, s *store.Store, c store.Claimed) {
	t.Helper()
	err := s.RecordAttempt(t.Context(), store.Attempt{
		RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Fence: c.Fence, Status: store.RecipientDelivered, Response: "250 OK",
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOneStepOfRetentionIsShort(t *testing.T) {
	t.Parallel()
	withClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s, keeping(1))
		for range 70 {
			storetest.Received(t, s, in)
		}
		for range 10 {
			storetest.Received(t, s, in, func(m *store.NewMessage) { m.Content.Raw = make([]byte, store.RawInRow) })
		}
		clock.Add(day)
		for i, want := range []int{32, 32, 13, 3, 0} { // the third: 6 small ones and 7 of 256 KiB
			gone, err := s.ExpireInbox(t.Context(), in.Seq, store.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if gone.Contents != want {
				t.Errorf("step %d removed %d contents, want %d", i, gone.Contents, want)
			}
		}
		clock.Add(store.RecordTTL)
		if gone, err := s.ExpireRecords(t.Context()); err != nil || gone.Records != 32 {
			t.Errorf("a step removed %d records, %v, want 32", gone.Records, err)
		}
	})
}

// N4, for retention: what one node deletes no other one does.
func TestRetentionOnSeveralNodesDoesEachThingOnce(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now())
		cfg.Now = clock.Now
		nodes := []*store.Store{storetest.OpenConfig(t, cfg)}
		if nodes[0].Engine() == "postgresql" {
			nodes = append(nodes, storetest.OpenConfig(t, cfg), storetest.OpenConfig(t, cfg))
		} else {
			nodes = append(nodes, nodes[0], nodes[0])
		}
		const inboxes, each = 4, 60
		for range inboxes {
			in := storetest.Inbox(t, nodes[0], keeping(1))
			for range each {
				storetest.Received(t, nodes[0], in)
			}
		}
		all := func() (sum store.Removed) {
			var mu sync.Mutex
			var running sync.WaitGroup
			for _, s := range nodes {
				running.Go(func() {
					gone := expire(t, s)
					mu.Lock()
					defer mu.Unlock()
					sum.Add(gone)
				})
			}
			running.Wait()
			sum.Add(expire(t, nodes[0])) // what two of them left to each other
			return sum
		}
		clock.Add(day)
		wantRemoved(t, all(), store.Removed{Contents: inboxes * each})
		clock.Add(store.RecordTTL)
		wantRemoved(t, all(), store.Removed{Records: inboxes * each})
		if n := count(t, cfg, "threads"); n != 0 {
			t.Errorf("%d threads left", n)
		}
	})
}

// Mail comes in to a thread while what was in it is deleted.
func TestMailJoinsAThreadThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now())
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s, keeping(1))
		for range 30 {
			first := storetest.Received(t, s, in)
			clock.Add(day)
			expire(t, s)
			clock.Add(store.RecordTTL)
			var running sync.WaitGroup
			running.Go(func() { expire(t, s) })
			for range 3 {
				running.Go(func() {
					storetest.Received(t, s, in, func(m *store.NewMessage) { m.Refs.V.InReplyTo = []string{first.HeaderID} })
				})
			}
			running.Wait()
		}
		var wrong int
		const q = `SELECT count(*) FROM threads t WHERE message_count <> (SELECT count(*) FROM messages m WHERE m.thread_seq = t.seq)`
		if err := openRaw(t, cfg).Get(&wrong, q); err != nil || wrong != 0 {
			t.Errorf("%d threads with a wrong count, %v", wrong, err)
		}
	})
}
