package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func leases(cs ...store.Claimed) []work.Lease {
	var ls []work.Lease
	for _, c := range cs {
		ls = append(ls, work.Lease{Row: c.Seq, Fence: c.Fence})
	}
	return ls
}

// A claim lasts for as long as it is renewed, and a renewal reports those that
// are gone: recorded, or taken by another process (N1).
func TestLeasesAreRenewed(t *testing.T) {
	t.Parallel()
	eachEngineWithClock(t, func(t *testing.T, s *store.Store, clock *storetest.Clock) {
		renew := func(want []work.Lease, claims ...store.Claimed) {
			t.Helper()
			lost, err := s.RenewLeases(t.Context(), store.WorkRecipients, leases(claims...), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, lost); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		}
		in := storetest.Inbox(t, s)
		storetest.Sent(t, s, in, []string{"kept@out.example", "done@out.example", "taken@out.example"})
		cs := claim(t, s, 3, time.Minute)
		kept, done, taken := cs[0], cs[1], cs[2]
		renew(nil) // nothing at all

		for range 3 {
			clock.Add(50 * time.Second)
			renew(nil, cs...)
			if again := claim(t, s, 10, time.Minute); len(again) != 0 {
				t.Fatalf("claimed although the lease was renewed: %v", emails(again))
			}
		}
		record(t, s, done, store.RecipientDelivered)
		clock.Add(50 * time.Second)
		renew(leases(done), kept, done) // not the third
		clock.Add(20 * time.Second)
		other := claim(t, s, 10, time.Minute)
		if !slices.Equal(emails(other), []string{"taken@out.example"}) {
			t.Fatalf("claimed %v, want the one whose lease was over", emails(other))
		}
		clock.Add(10 * time.Second)
		renew(leases(taken), kept, taken)
		clock.Add(50 * time.Second) // the renewal of the old claim was none of the new one
		if again := claim(t, s, 10, time.Minute); !slices.Equal(emails(again), []string{"taken@out.example"}) {
			t.Errorf("claimed %v", emails(again))
		}
		if err := s.RecordAttempt(t.Context(), attempt(taken, store.RecipientBounced)); !errors.Is(err, store.ErrState) {
			t.Errorf("the lost claim was recorded: %v", err)
		}

		clock.Add(time.Hour) // over, but no one has taken it
		renew(nil, kept)
		if again := claim(t, s, 10, time.Minute); slices.Contains(emails(again), "kept@out.example") {
			t.Error("claimed although a late renewal was in time")
		}
	})
}
