package store_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// A search finds the same whether the index holds nothing, a part or all.
func TestSearchFindsIndexedAndUnindexedMessages(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		other := storetest.Inbox(t, s, func(n *store.Inbox) { n.AccountID = in.AccountID })
		storetest.Received(t, s, storetest.Inbox(t, s), func(m *store.NewMessage) { m.Subject = "red of another account" })
		var want []string
		for i := range 120 {
			subject := fmt.Sprintf("red fish %d", i)
			if i%3 == 0 {
				subject = fmt.Sprintf("fish red blue %d", i)
			}
			to := in
			if i%2 == 0 {
				to = other
			}
			storetest.Received(t, s, to, func(m *store.NewMessage) { m.Subject = subject })
			want = append([]string{subject}, want...)
		}
		keep := func(has func(i int) bool) []string {
			var kept []string
			for i := range want {
				if has(len(want) - 1 - i) {
					kept = append(kept, want[i])
				}
			}
			return kept
		}
		check := func(t *testing.T) {
			t.Helper()
			all := store.MessageFilter{AccountID: in.AccountID}
			for name, tt := range map[string]struct {
				f    store.MessageFilter
				text *store.TextQuery
				want []string
			}{
				"a word of all":        {all, words("red"), want},
				"two words":            {all, words("blue", "fish"), keep(func(i int) bool { return i%3 == 0 })},
				"a word of one":        {all, words("77"), keep(func(i int) bool { return i == 77 })},
				"a word of none":       {all, words("fish", "green"), nil},
				"a phrase":             {all, phrase("red", "fish"), keep(func(i int) bool { return i%3 != 0 })},
				"a phrase of none":     {all, phrase("blue", "red"), nil},
				"no word":              {all, words(), nil},
				"a word of one inbox":  {store.MessageFilter{AccountID: in.AccountID, InboxSeq: in.Seq}, words("red"), keep(func(i int) bool { return i%2 == 1 })},
				"what the key may see": {store.MessageFilter{AccountID: in.AccountID, InboxIDs: []string{in.ID}}, words("red"), keep(func(i int) bool { return i%2 == 1 })},
				"with a filter":        {store.MessageFilter{AccountID: in.AccountID, Subject: "blue"}, words("red"), keep(func(i int) bool { return i%3 == 0 })},
				"sent":                 {store.MessageFilter{AccountID: in.AccountID, Direction: store.DirectionOut}, words("red"), nil},
				"received":             {store.MessageFilter{AccountID: in.AccountID, FromLike: "%@out.example"}, words("red"), want},
			} {
				tt.f.Text = tt.text
				if diff := cmp.Diff(tt.want, subjects(every(t, s, tt.f, 7))); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		}
		check(t)
		for range 3 {
			if n, err := s.Index(t.Context(), "test", 17, subjectText); n != 17 || err != nil {
				t.Fatalf("indexed %d, %v", n, err)
			}
			check(t)
		}
		indexAll(t, s, 50)
		check(t)
	})
}

// What leaves the index with its content is found no more, indexed or not.
func TestMessageRemovedFromTheIndexIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		var seqs []int64
		for i := range 6 {
			m := storetest.Received(t, s, in, func(m *store.NewMessage) { m.Subject = fmt.Sprintf("red %d", i) })
			seqs = append(seqs, m.Seq)
			if i == 3 {
				indexAll(t, s, 10)
			}
		}
		if err := s.Unindex(t.Context(), seqs[0], seqs[2], seqs[5]); err != nil {
			t.Fatal(err)
		}
		f := store.MessageFilter{AccountID: in.AccountID, Text: words("red")}
		for range 2 {
			if diff := cmp.Diff([]string{"red 4", "red 3", "red 1"}, subjects(every(t, s, f, 10))); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			indexAll(t, s, 10)
		}
	})
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
