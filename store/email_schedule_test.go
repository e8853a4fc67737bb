package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// at schedules an email.
func at(when time.Time) func(*store.NewEmail) {
	return func(e *store.NewEmail) {
		due := store.NewTime(when)
		e.ScheduledAt = &due
	}
}

// dueRules are those of an installation whose mail domain is that of the tests.
var dueRules = store.DueRules{MailDomain: storetest.Domain}

func release(t *testing.T, s *store.Store) int {
	t.Helper()
	n, err := s.ReleaseScheduled(t.Context(), dueRules)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A scheduled email waits, whatever restarts meanwhile, and is due when its time
// comes (O13).
func TestScheduledEmailIsQueuedWhenDue(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		first, err := store.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		due := store.NewTime(begin.Add(time.Hour))
		e := storetest.Email(t, first, storetest.Account(t, first).Seq, []string{"ann@out.example"}, at(due.Time))
		if e.Status != store.EmailScheduled || e.Recipients[0].Status != store.RecipientScheduled {
			t.Errorf("accepted as %s, %s", e.Status, e.Recipients[0].Status)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		s := storetest.OpenConfig(t, cfg)
		clock.Add(time.Hour - time.Second)
		if n := release(t, s); n != 0 || len(claim(t, s, 10, time.Minute)) != 0 {
			t.Fatalf("%d queued before their time, or claimed", n)
		}
		clock.Add(time.Second)
		if n := release(t, s); n != 1 {
			t.Fatalf("%d queued, want 1", n)
		}
		if got := email(t, s, e); got.Status != store.MessageQueued || !got.ScheduledAt.Equal(due.Time) {
			t.Errorf("when due: %s, scheduled at %v", got.Status, got.ScheduledAt)
		}
		if cs := claim(t, s, 10, time.Minute); len(cs) != 1 || !cs[0].CreatedAt.Equal(due.Time) {
			t.Errorf("claimed %+v", cs)
		}
		clock.Add(-2 * time.Hour) // as clocks may
		clock.Add(2 * time.Hour)
		if n := release(t, s); n != 0 {
			t.Errorf("%d queued again", n)
		}
		var types []string
		for _, ev := range events(t, cfg, e.Seq) {
			types = append(types, ev.Type)
		}
		if d := cmp.Diff([]string{"email.scheduled", "email.queued"}, types); d != "" {
			t.Errorf("events: -want +got:\n%s", d)
		}
	})
}

// Of cancelling and sending exactly one wins (O13).
func TestCancelRacesWithTheQueue(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		const emails = 40
		account := storetest.Account(t, s).Seq
		due := at(time.Now().Add(-time.Second)) // in the store; handlers send due emails at once
		var es []store.Email
		for range emails {
			es = append(es, storetest.Email(t, s, account, []string{"ann@out.example", "bob@other.example"}, due))
		}
		cancelled := make([]bool, emails)
		sent := map[string]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for i, e := range es {
			all.Go(func() {
				err := s.CancelEmail(t.Context(), account, e.ID)
				if cancelled[i] = err == nil; err != nil && !errors.Is(err, store.ErrState) {
					t.Error(err)
				}
			})
		}
		for range 2 {
			all.Go(func() {
				for range 20 {
					if _, err := s.ReleaseScheduled(t.Context(), dueRules); err != nil {
						t.Error(err)
					}
					cs, err := s.ClaimRecipients(t.Context(), 7, time.Minute, nil)
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					for _, c := range cs {
						sent[c.Message.ID]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for i, e := range es {
			if n := sent[e.ID]; cancelled[i] != (n == 0) || n != 0 && n != 2 {
				t.Errorf("email %d: cancelled %t, %d recipients sent to", i, cancelled[i], n)
			}
		}
	})
}
