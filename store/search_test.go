package store_test

import (
	"strings"
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
		n, err := s.Index(t.Context(), "test", batch, subjectText)
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
		if n, err := s.SweepIndex(t.Context()); n != 0 || err != nil {
			t.Fatalf("swept %d buckets that hold messages, %v", n, err)
		}
		if err := s.Unindex(t.Context(), gone.Seq); err != nil {
			t.Fatal(err)
		}
		if n, err := s.SweepIndex(t.Context()); n != 1 || err != nil {
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

// One node at a time fills the index; another takes over when the first releases
// it or stops responding.
func TestOneNodeFillsTheIndex(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			oneNodeFillsTheIndex(t, e)
		})
	}
}

func oneNodeFillsTheIndex(t *testing.T, e storetest.Engine) {
	clock := storetest.NewClock(begin)
	s := storetest.Open(t, e, storetest.WithNow(clock.Now))
	in := storetest.Inbox(t, s)
	index := func(holder string, want int) {
		t.Helper()
		storetest.Received(t, s, in)
		if n, err := s.Index(t.Context(), holder, 1, subjectText); n != want || err != nil {
			t.Errorf("%s indexed %d, %v, want %d", holder, n, err, want)
		}
	}
	index("a", 1)
	index("b", 0)
	if err := s.ReleaseIndex(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	clock.Add(time.Microsecond)
	index("b", 1)
	index("a", 0)
	clock.Add(time.Minute)
	index("a", 1)
}
