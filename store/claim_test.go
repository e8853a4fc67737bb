package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func claim(t *testing.T, s *store.Store, limit int, lease time.Duration, busy ...any) []store.Claimed {
	t.Helper()
	cs, err := s.ClaimRecipients(t.Context(), limit, lease, busyKeys(busy...))
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

func busyKeys(keys ...any) *work.Busy {
	if len(keys) == 0 {
		return nil
	}
	return &work.Busy{Keys: keys}
}

func emails(cs []store.Claimed) []string {
	var es []string
	for _, c := range cs {
		es = append(es, c.Email)
	}
	return es
}

func TestClaimReturnsWhatDeliveryNeeds(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock(begin)
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		m := storetest.Sent(t, s, in, []string{"bob@out.example"})
		cs := claim(t, s, 10, time.Minute)
		if len(cs) != 1 {
			t.Fatalf("claimed %d, want 1", len(cs))
		}
		c := cs[0]
		if c.Email != "bob@out.example" || c.Domain != "out.example" || c.Fence != 1 || c.Attempts != 1 ||
			c.Message.ID != m.ID || c.Message.HeaderID != m.HeaderID || c.From != in.Address || c.MessageSeq != m.Seq {
			t.Errorf("claimed %+v", c)
		}
		if !c.NextAttemptAt.Equal(store.NewTime(begin.Add(time.Minute)).Time) {
			t.Errorf("the lease ends at %v", c.NextAttemptAt)
		}
	}, storetest.WithNow(clock.Now))
}

// Whatever two nodes do at the same time, a recipient belongs to one of them.
func TestTwoNodesClaimEachRecipientOnce(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		stores := []*store.Store{storetest.OpenConfig(t, cfg)}
		if stores[0].Engine() == string(storetest.PostgreSQL) {
			stores = append(stores, storetest.OpenConfig(t, cfg))
		}
		in := storetest.Inbox(t, stores[0])
		for i := range 20 {
			var to []string
			for j := range 25 {
				to = append(to, fmt.Sprintf("r%d@out.example", i*25+j))
			}
			storetest.Sent(t, stores[0], in, to)
		}
		var mu sync.Mutex
		seen := map[string]int{}
		var workers sync.WaitGroup
		for w := range 8 {
			workers.Go(func() {
				for {
					cs := claim(t, stores[w%len(stores)], 7, time.Hour)
					if len(cs) > 7 {
						t.Errorf("claimed %d, want at most 7", len(cs))
					}
					mu.Lock()
					for _, c := range cs {
						seen[c.Email]++
					}
					all := len(seen) == 500
					mu.Unlock()
					if all || t.Failed() || len(cs) == 0 && stores[0].Engine() == string(storetest.SQLite) {
						return
					}
				}
			})
		}
		workers.Wait()
		if len(seen) != 500 {
			t.Errorf("claimed %d recipients, want 500", len(seen))
		}
		for email, n := range seen {
			if n != 1 {
				t.Errorf("%s was claimed %d times", email, n)
			}
		}
		if more := claim(t, stores[0], 10, time.Hour); len(more) != 0 {
			t.Errorf("claimed %v once more", emails(more))
		}
	})
}

func TestLeaseLapsesByItself(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"bob@out.example"})
		first := claim(t, s, 1, time.Minute)[0]
		clock.Add(time.Minute - time.Millisecond)
		if cs := claim(t, s, 1, time.Minute); len(cs) != 0 {
			t.Fatalf("claimed before the lease ended: %v", emails(cs))
		}
		clock.Add(time.Millisecond)
		second := claim(t, s, 1, time.Minute)[0]
		if second.Seq != first.Seq || second.Fence != first.Fence+1 || second.Attempts != 2 {
			t.Errorf("claimed again: %+v", second.Recipient)
		}
	})
}

func TestBusyDomainsAreSkipped(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"a@one.example", "b@two.example", "c@three.example", "d@two.example"})
		if diff := cmp.Diff([]string{"a@one.example"}, emails(claim(t, s, 10, time.Hour, "two.example", "three.example"))); diff != "" {
			t.Errorf("first (-want +got):\n%s", diff)
		}
		due, err := s.NextDue(t.Context(), store.WorkRecipients, busyKeys("two.example", "three.example"))
		if err != nil || due == nil || due.Before(time.Now()) {
			t.Errorf("next due beside the busy ones: %v, %v, want the end of the lease", due, err)
		}
		if diff := cmp.Diff([]string{"b@two.example", "d@two.example"}, emails(claim(t, s, 10, time.Hour, "three.example"))); diff != "" {
			t.Errorf("second (-want +got):\n%s", diff)
		}
	})
}

func TestClaimsTakeTheLongestDueAndTheNewest(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		for i := range 5 {
			storetest.Sent(t, s, in, []string{fmt.Sprintf("r%d@out.example", i)})
			clock.Add(time.Second)
		}
		var got [][]string
		for range 3 {
			es := emails(claim(t, s, 2, time.Hour))
			slices.Sort(es)
			got = append(got, es)
		}
		want := [][]string{{"r0@out.example", "r4@out.example"}, {"r1@out.example", "r3@out.example"}, {"r2@out.example"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("claimed (-want +got):\n%s", diff)
		}
	})
}

func TestNextDue(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		next := func() *store.Time {
			due, err := s.NextDue(t.Context(), store.WorkRecipients, nil)
			if err != nil {
				t.Fatal(err)
			}
			return due
		}
		if due := next(); due != nil {
			t.Fatalf("due at %v in an empty queue", due)
		}
		storetest.Sent(t, s, in, []string{"a@out.example"})
		c := claim(t, s, 1, time.Minute)[0]
		if due := next(); !due.Equal(c.NextAttemptAt.Time) {
			t.Errorf("due at %v, want the end of the lease", due)
		}
		later := store.NewTime(clock.Now().Add(time.Hour))
		record(t, s, c, store.RecipientQueued, func(a *store.Attempt) { a.Next = &later })
		if due := next(); !due.Equal(later.Time) {
			t.Errorf("due at %v, want the next try at %v", due, later)
		}
		clock.Add(time.Hour)
		record(t, s, claim(t, s, 1, time.Minute)[0], store.RecipientDelivered)
		if due := next(); due != nil {
			t.Errorf("due at %v when all is delivered", due)
		}
	})
}

// eachEngineWithClock runs test on each engine, each with a clock of its own.
func eachEngineWithClock(t *testing.T, test func(t *testing.T, s *store.Store, clock *storetest.Clock)) {
	t.Helper()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			clock := storetest.NewClock(begin)
			test(t, storetest.Open(t, e, storetest.WithNow(clock.Now)), clock)
		})
	}
}

// After a crash on SQLite, which has one process, no one waits for leases that
// no one holds. What waits for its next try goes on waiting.
func TestReleaseLeases(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"held@out.example", "later@out.example"})
		held := claim(t, s, 10, time.Hour)
		next := store.NewTime(clock.Now().Add(time.Minute))
		retry := store.Attempt{
			RecipientSeq: held[1].Seq, MessageSeq: held[1].MessageSeq, Fence: held[1].Fence,
			Status: store.RecipientQueued, Next: &next, Response: "451 4.7.1 try later",
		}
		if err := s.RecordAttempt(t.Context(), retry); err != nil {
			t.Fatal(err)
		}
		want := 1
		if s.Engine() != string(storetest.SQLite) {
			want = 0
		}
		if n, err := s.ReleaseLeases(t.Context(), store.WorkRecipients); err != nil || n != want {
			t.Fatalf("ReleaseLeases = %d, %v, want %d", n, err, want)
		}
		if got := claim(t, s, 10, time.Hour); len(got) != want || want == 1 && got[0].Email != held[0].Email {
			t.Errorf("claimed %v after the release, want %d", emails(got), want)
		}
		stale := store.Attempt{
			RecipientSeq: held[0].Seq, MessageSeq: held[0].MessageSeq, Fence: held[0].Fence, Status: store.RecipientDelivered,
		}
		if err := s.RecordAttempt(t.Context(), stale); want == 1 && !errors.Is(err, store.ErrState) {
			t.Errorf("the claim from before was recorded: %v", err)
		}
	})
}

// A retry makes what is deferred due at once. What is claimed keeps its lease, so that
// however many retries and claims run at the same time, one claim takes it.
func TestRetryDeferredSendsOnce(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		m := storetest.Sent(t, s, in, []string{"slow@out.example", "done@out.example"})
		retry := func(want error) {
			t.Helper()
			if err := s.RetryDeferred(t.Context(), in.AccountID, m.ID); !errors.Is(err, want) {
				t.Errorf("retry: %v, want %v", err, want)
			}
		}
		retry(store.ErrState) // the first attempt is due already
		cs := claim(t, s, 10, time.Hour)
		retry(store.ErrState)
		if again := claim(t, s, 10, time.Hour); len(again) != 0 {
			t.Fatalf("claimed %v although the lease lasts", emails(again))
		}
		next := store.NewTime(time.Now().Add(time.Hour))
		for _, c := range cs {
			if c.Email == "done@out.example" {
				record(t, s, c, store.RecipientDelivered)
			} else {
				record(t, s, c, store.RecipientQueued, func(a *store.Attempt) { a.Next = &next })
			}
		}
		if err := s.RetryDeferred(t.Context(), storetest.Account(t, s).Seq, m.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("another account: %v", err)
		}
		if early := claim(t, s, 10, time.Hour); len(early) != 0 {
			t.Fatalf("claimed %v before the next attempt", emails(early))
		}
		retry(nil)
		var mu sync.Mutex
		var claimed []store.Claimed
		var running sync.WaitGroup
		for range 4 {
			running.Go(func() {
				if err := s.RetryDeferred(t.Context(), in.AccountID, m.ID); err != nil && !errors.Is(err, store.ErrState) {
					t.Error(err)
				}
				got := claim(t, s, 10, time.Hour)
				mu.Lock()
				defer mu.Unlock()
				claimed = append(claimed, got...)
			})
		}
		running.Wait()
		if len(claimed) != 1 || claimed[0].Email != "slow@out.example" {
			t.Fatalf("claimed %v, want slow@out.example once", emails(claimed))
		}
		record(t, s, claimed[0], store.RecipientDelivered)
		retry(store.ErrState)
		if more := claim(t, s, 10, time.Hour); len(more) != 0 {
			t.Errorf("claimed %v after the delivery", emails(more))
		}
	})
}

// New mail of one account does not wait for the backlog of another, and the backlog is
// not left behind either, also if there is room for one recipient at a time.
func TestClaimsAreFair(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		big, small := storetest.Inbox(t, s), storetest.Inbox(t, s)
		for range 20 {
			storetest.Sent(t, s, big, []string{"a@relay.example", "b@relay.example", "c@relay.example", "d@relay.example", "e@relay.example"})
		}
		for _, limit := range []int{10, 1} {
			clock.Add(time.Second)
			storetest.Sent(t, s, small, []string{"code@relay.example"})
			firsts, others := 0, 0
			for range 2 {
				for _, c := range claim(t, s, limit, time.Hour) {
					if c.Message.AccountID == small.AccountID {
						firsts++
					} else {
						others++
					}
				}
			}
			if firsts != 1 || others != 2*limit-1 {
				t.Errorf("two claims of %d took %d new and %d of the backlog", limit, firsts, others)
			}
		}
		rest := 0
		for cs := claim(t, s, 10, time.Hour); len(cs) > 0; cs = claim(t, s, 10, time.Hour) {
			rest += len(cs)
		}
		if want := 100 - 19 - 1; rest != want {
			t.Errorf("%d are claimed at the end, want %d", rest, want)
		}
	})
}

// A claim of a message reads neither the messages that are done nor those that are not due:
// it follows an index in its order.
func TestClaimOfAMessageFollowsItsIndex(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		inboxes, message, inboxArgs, messageArgs := s.ClaimQueries(storetest.Inbox(t, s))
		for q, args := range map[string][]any{inboxes: inboxArgs, message: messageArgs} {
			plan, err := s.Explain(t.Context(), q, args...)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(plan, "messages_due") || strings.Contains(plan, "SCAN m") {
				t.Errorf("the index is not used:\n%s\n%s", q, plan)
			}
			if q == message && (strings.Contains(plan, "TEMP B-TREE") || strings.Contains(plan, "  ->  Sort")) {
				t.Errorf("all that is due is sorted:\n%s", plan)
			}
		}
	})
}
