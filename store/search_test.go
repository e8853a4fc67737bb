package store_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// subjectText takes the words of a message from its subject alone.
func subjectText(m store.Message) (string, error) { return strings.ToLower(m.Subject), nil }

func words(ws ...string) *store.TextQuery { return &store.TextQuery{Words: ws, Text: subjectText} }

func phrase(ws ...string) *store.TextQuery {
	return &store.TextQuery{Words: ws, Phrases: [][]string{ws}, Text: subjectText}
}

// indexAll fills the index until there is nothing left to index.
func indexAll(t *testing.T, s *store.Store, batch int) {
	t.Helper()
	for {
		n, err := s.Index(t.Context(), batch, subjectText)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// An empty bucket is removed, and the account's next message starts a new one.
func TestSweepIndexForgetsEmptyBuckets(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		old, in := storetest.Inbox(t, s), storetest.Inbox(t, s)
		gone := storetest.Received(t, s, old)
		storetest.Received(t, s, in)
		indexAll(t, s, 10)
		if n, err := s.Sweep(t.Context(), "search_buckets"); n != 0 || err != nil {
			t.Fatalf("swept %d buckets that hold messages, %v", n, err)
		}
		if err := s.Unindex(t.Context(), gone.Seq); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Sweep(t.Context(), "search_buckets"); n != 1 || err != nil {
			t.Fatalf("swept %d buckets, %v, want the one that is empty", n, err)
		}
		storetest.Received(t, s, old, func(m *store.NewMessage) { m.Subject = "red" })
		indexAll(t, s, 10)
		f := store.MessageFilter{AccountID: old.AccountID, Text: words("red")}
		if n := len(every(t, s, f, 10)); n != 1 {
			t.Errorf("found %d messages after the sweep, want 1", n)
		}
	})
}

// One node at a time fills the index; another takes over when the first is done or stops
// responding.
func TestOneNodeFillsTheIndex(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(begin)
	cfg := storetest.Config(t, storetest.PostgreSQL, storetest.WithNow(clock.Now))
	a, b := storetest.OpenConfig(t, cfg), storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, a)
	index := func(s *store.Store, want int, text store.IndexText) {
		t.Helper()
		if n, err := s.Index(t.Context(), 1, text); n != want || err != nil {
			t.Errorf("indexed %d, %v, want %d", n, err, want)
		}
	}
	storetest.Received(t, a, in)
	index(a, 1, func(m store.Message) (string, error) {
		index(b, 0, subjectText)
		return subjectText(m)
	})
	storetest.Received(t, a, in)
	index(b, 1, subjectText)
	storetest.Received(t, a, in)
	var late error
	_, late = a.Index(t.Context(), 1, func(m store.Message) (string, error) {
		clock.Add(time.Minute)
		index(b, 1, subjectText)
		return subjectText(m)
	})
	if !errors.Is(late, store.ErrUnavailable) {
		t.Errorf("a node that was too late: %v, want ErrUnavailable", late)
	}
}

// A search passes over a bounded number of messages of other accounts that are not
// indexed; the next page goes on.
func TestSearchPassesOverOtherAccountsThatAreNotIndexed(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		s.Narrow(5, 1000, 1000, 10, 4096)
		in, other := storetest.Inbox(t, s), storetest.Inbox(t, s)
		red := func(m *store.NewMessage) { m.Subject = "red" }
		want := []int64{storetest.Received(t, s, in, red).Seq}
		indexAll(t, s, 10)
		for range 3 {
			for range 4 {
				storetest.Received(t, s, other, red)
			}
			want = append([]int64{storetest.Received(t, s, in, red).Seq}, want...)
		}
		for range 12 {
			storetest.Received(t, s, other, red)
		}
		check := func(when string) {
			t.Helper()
			var got []int64
			for _, m := range every(t, s, store.MessageFilter{AccountID: in.AccountID, Text: words("red")}, 10) {
				got = append(got, m.Seq)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: found %v, want %v", when, got, want)
			}
		}
		check("one is indexed")
		if n, err := s.Index(t.Context(), 7, subjectText); n != 7 || err != nil {
			t.Fatal(n, err)
		}
		check("some are indexed")
		indexAll(t, s, 10)
		check("all are indexed")
	})
}

// A message may be committed after one with a higher number. The index waits for it.
func TestIndexWaitsForALowerNumber(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s := storetest.OpenConfig(t, cfg)
	s.WaitToSettle(10 * time.Millisecond)
	slow, in := storetest.Inbox(t, s), storetest.Inbox(t, s)
	tx := openRaw(t, cfg).MustBegin()
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	var seq int64
	tx.MustExec(`SELECT 1 FROM inboxes WHERE seq = $1 FOR NO KEY UPDATE`, slow.Seq)
	if err := tx.Get(&seq, `SELECT nextval(pg_get_serial_sequence('messages', 'seq'))`); err != nil {
		t.Fatal(err)
	}
	m := storetest.Received(t, s, in, func(m *store.NewMessage) { m.Subject = "red" })
	if m.Seq < seq {
		t.Fatalf("the message has the number %d, below %d", m.Seq, seq)
	}
	if n, err := s.Index(t.Context(), 10, subjectText); n != 0 || err != nil {
		t.Errorf("indexed %d messages, %v, while one with a lower number is written", n, err)
	}
	tx.MustExec(`INSERT INTO messages SELECT (jsonb_populate_record(m, jsonb_build_object('seq', cast($1 AS bigint), 'id', 'msg_slow', 'account_id', cast($2 AS bigint), 'inbox_seq', cast($3 AS bigint)))).*
		FROM messages m WHERE seq = $4`, seq, slow.AccountID, slow.Seq, m.Seq)
	tx.MustExec(`INSERT INTO contents SELECT (jsonb_populate_record(c, jsonb_build_object('message_seq', cast($1 AS bigint)))).* FROM contents c WHERE message_seq = $2`, seq, m.Seq)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	indexAll(t, s, 10)
	for _, account := range []int64{slow.AccountID, in.AccountID} {
		if n := len(every(t, s, store.MessageFilter{AccountID: account, Text: words("red")}, 10)); n != 1 {
			t.Errorf("found %d messages of account %d, want 1", n, account)
		}
	}
	var indexed int
	if err := openRaw(t, cfg).Get(&indexed, `SELECT count(*) FROM search_index`); err != nil || indexed != 2 {
		t.Errorf("the index holds %d messages, %v, want 2", indexed, err)
	}
}

// What is deleted while it is being indexed is not in the index afterwards.
func TestIndexingBesideDeleting(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		for range 30 {
			var ids []string
			for range 3 {
				ids = append(ids, storetest.Received(t, s, in).ID)
			}
			var both sync.WaitGroup
			both.Go(func() {
				if _, err := s.Index(t.Context(), 10, subjectText); err != nil {
					t.Error(err)
				}
			})
			both.Go(func() {
				for _, id := range ids {
					if err := s.DeleteMessage(t.Context(), in.AccountID, id); err != nil {
						t.Error(err)
					}
				}
			})
			both.Wait()
		}
		indexAll(t, s, 10)
		var n int
		if err := openRaw(t, cfg).Get(&n, `SELECT count(*) FROM search_index`); err != nil || n != 0 {
			t.Errorf("the index holds %d deleted messages, %v", n, err)
		}
	})
}
