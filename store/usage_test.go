package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// noon is far from the ends of its day and of its month.
var noon = time.Date(2026, 9, 15, 12, 0, 0, 0, time.UTC)

// onPlan opens a store whose accounts are on plan.
func onPlan(plan store.Plan, now func() time.Time) storetest.Option {
	plan.Name = "tested"
	return storetest.WithConfig(func(c *store.Config) {
		c.Plans, c.DefaultPlan, c.Now = []store.Plan{plan}, plan.Name, now
	})
}

// today is what Stats says of the whole account for the current day.
func today(t *testing.T, s *store.Store, accountID int64, inboxes ...int64) store.Counts {
	t.Helper()
	days, err := s.Stats(t.Context(), accountID, inboxes, 1)
	if err != nil {
		t.Fatal(err)
	}
	return days[0].Counts
}

func usage(t *testing.T, s *store.Store, accountID int64) store.Usage {
	t.Helper()
	u, err := s.Usage(t.Context(), accountID)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// Many callers at once get exactly what the plan has, and not one recipient
// more; a refused send changes nothing.
func TestLimitsOfAPlanAreExact(t *testing.T) {
	t.Parallel()
	const callers, each = 8, 10
	clock := storetest.NewClock(noon)
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		nodes := []*store.Store{storetest.OpenConfig(t, cfg)}
		if nodes[0].Engine() == string(storetest.PostgreSQL) {
			nodes = append(nodes, storetest.OpenConfig(t, cfg))
		}
		in := storetest.Inbox(t, nodes[0])
		var accepted, refused atomic.Int64
		var calls sync.WaitGroup
		for i := range callers {
			calls.Go(func() {
				for range each {
					_, err := nodes[i%len(nodes)].Enqueue(t.Context(), storetest.NewSent(in, []string{"a@out.example", "b@out.example"}), nil)
					var limit *store.Refused
					switch {
					case err == nil:
						accepted.Add(2)
					case errors.As(err, &limit) && limit.Rule == store.RuleDay:
						refused.Add(1)
					default:
						t.Errorf("send: %v", err)
					}
				}
			})
		}
		calls.Wait()
		if accepted.Load() != 50 || refused.Load() != callers*each-25 {
			t.Errorf("%d recipients were accepted, %d calls refused", accepted.Load(), refused.Load())
		}
		if u := usage(t, nodes[0], in.AccountID); u.Today != 50 {
			t.Errorf("used %d", u.Today)
		}
		if l, err := nodes[0].ListMessages(t.Context(), store.MessageFilter{AccountID: in.AccountID}, store.Page{Limit: 100}); err != nil || len(l.Rows) != 25 {
			t.Errorf("%d messages are stored: %v", len(l.Rows), err)
		}
	}, onPlan(store.Plan{Daily: 51}, clock.Now))
}

func TestInboxesOfAPlan(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		a := storetest.Account(t, s)
		var made, refused atomic.Int64
		var calls sync.WaitGroup
		for range 12 {
			calls.Go(func() {
				_, err := s.CreateInbox(t.Context(), storetest.NewInbox(func(in *store.Inbox) { in.AccountID = a.Seq }), nil)
				limit, _ := errors.AsType[*store.Refused](err)
				switch {
				case err == nil:
					made.Add(1)
				case limit != nil && limit.Rule == store.RuleInboxes:
					refused.Add(1)
				default:
					t.Errorf("create an inbox: %v", err)
				}
			})
		}
		calls.Wait()
		if made.Load() != 5 || refused.Load() != 7 {
			t.Fatalf("%d inboxes were made and %d refused, want 5 and 7", made.Load(), refused.Load())
		}
		l, err := s.ListInboxes(t.Context(), a.Seq, store.InboxFilter{}, store.Page{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.DeleteInbox(t.Context(), a.Seq, l.Rows[0].ID); err != nil {
			t.Fatal(err)
		}
		if u := usage(t, s, a.Seq); u.Account.Inboxes != 4 {
			t.Errorf("%d inboxes are counted, want 4", u.Account.Inboxes)
		}
		storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = a.Seq })
	}, onPlan(store.Plan{Inboxes: 5}, time.Now))
}

// bounce sends to n recipients. The first hard ones bounce permanently, the rest
// are delivered.
func bounce(t *testing.T, s *store.Store, in store.Inbox, n, hard int) {
	t.Helper()
	for n > 0 {
		var to []string
		for i := range min(n, 50) {
			to = append(to, fmt.Sprintf("r%d@out.example", i))
		}
		storetest.Sent(t, s, in, to)
		for _, c := range claim(t, s, len(to), time.Minute) {
			status, response := store.RecipientDelivered, "250 2.0.0 thanks"
			if hard > 0 {
				status, response = store.RecipientBounced, "550 5.1.1 no such mailbox"
				hard--
			}
			record(t, s, c, status, func(a *store.Attempt) { a.Response = response })
		}
		n -= len(to)
	}
}

func TestTooManyBouncesPauseAnAccount(t *testing.T) {
	t.Parallel()
	watched := storetest.WithConfig(func(c *store.Config) { c.AutoPause = true })
	paused := func(t *testing.T, s *store.Store, in store.Inbox) bool {
		t.Helper()
		return usage(t, s, in.AccountID).Account.PausedAt != nil
	}
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(noon)
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		bounce(t, s, in, 199, 199)
		if paused(t, s, in) {
			t.Fatal("paused after 199 recipients")
		}
		bounce(t, s, in, 1, 1)
		if !paused(t, s, in) {
			t.Fatal("not paused after 200 that all bounced")
		}
		a := usage(t, s, in.AccountID).Account
		if err := s.ResumeAccount(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		bounce(t, s, in, 200, 0)
		bounce(t, s, in, 10, 10) // 10 of 210 are less than 5 %
		if paused(t, s, in) {
			t.Fatal("paused at 10 of 210")
		}
		bounce(t, s, in, 1, 1) // 11 of 211 are more
		if !paused(t, s, in) {
			t.Error("not paused at 11 of 211")
		}
		if err := s.ResumeAccount(t.Context(), a.ID); err != nil {
			t.Fatal(err)
		}
		bounce(t, s, in, 100, 0)
		bounce(t, s, in, 99, 99)
		clock.Add(30 * 24 * time.Hour)
		bounce(t, s, in, 100, 1)
		if paused(t, s, in) {
			t.Error("what bounced 30 days ago still counts")
		}
	}, watched)
}

func TestComplaintsPauseAnAccount(t *testing.T) {
	t.Parallel()
	watched := storetest.WithConfig(func(c *store.Config) { c.AutoPause = true })
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		bounce(t, s, in, 980, 0)
		paused := func() bool { return usage(t, s, in.AccountID).Account.PausedAt != nil }
		complain(t, s, in, "", "", "", "", "one.example", "one.example", "two.example") // 3 of 987, of 2 domains
		if paused() {
			t.Error("paused by complaints of two domains and four that are not authenticated")
		}
		complain(t, s, in, "three.example")
		if !paused() {
			t.Error("not paused at 4 of 988 in three domains, which is more than 0.3 %")
		}
		if err := s.ResumeAccount(t.Context(), usage(t, s, in.AccountID).Account.ID); err != nil {
			t.Fatal(err)
		}
		bounce(t, s, in, 250, 0)
		if complain(t, s, in, "four.example"); paused() {
			t.Error("paused by complaints from before sending was resumed")
		}
	}, watched)
}

// complain delivers a message for each domain, and then reports a complaint that
// counts for that domain.
func complain(t *testing.T, s *store.Store, in store.Inbox, domains ...string) {
	t.Helper()
	for _, domain := range domains {
		storetest.Sent(t, s, in, []string{"a@out.example"})
		c := claim(t, s, 1, time.Minute)[0]
		record(t, s, c, store.RecipientDelivered)
		r := store.Report{RecipientSeq: c.Seq, MessageSeq: c.MessageSeq, Status: store.RecipientComplained, ComplaintOf: domain}
		for range 2 { // the second says nothing new
			if err := s.RecordReport(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// O10: the operator hears of complaints at more than 0.1 %, before 0.3 % stop the
// account.
func TestComplaintsWarnBeforeTheyPause(t *testing.T) {
	t.Parallel()
	const warning = "complaints come near"
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer // read when no write is under way
			s := storetest.Open(t, e, storetest.WithLog(slog.New(slog.NewTextHandler(&log, nil))),
				storetest.WithConfig(func(c *store.Config) { c.AutoPause = true }))
			in := storetest.Inbox(t, s)
			bounce(t, s, in, 400, 0)
			if strings.Contains(log.String(), warning) {
				t.Errorf("a warning without a complaint:\n%s", &log)
			}
			complain(t, s, in, "one.example")
			if n := strings.Count(log.String(), warning); n != 1 {
				t.Errorf("%d warnings at 1 of 401:\n%s", n, &log)
			}
			if usage(t, s, in.AccountID).Account.PausedAt != nil {
				t.Error("paused at 1 of 401")
			}
		})
	}
}

func TestNoAccountIsPausedIfPausingIsOff(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		bounce(t, s, in, 200, 200)
		if usage(t, s, in.AccountID).Account.PausedAt != nil {
			t.Error("an account was paused")
		}
	})
}

// Readers, and counters on all nodes, work beside writers: each event counts once,
// also after it is deleted.
func TestEachEventCountsOnce(t *testing.T) {
	t.Parallel()
	const writers, each = 4, 25
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(noon)
		cfg.Now = clock.Now
		nodes := []*store.Store{storetest.OpenConfig(t, cfg)}
		if nodes[0].Engine() == string(storetest.PostgreSQL) {
			nodes = append(nodes, storetest.OpenConfig(t, cfg))
		}
		in, other := storetest.Inbox(t, nodes[0]), storetest.Inbox(t, nodes[0])
		var begun, ended atomic.Int64
		var writing, counting sync.WaitGroup
		done := make(chan struct{})
		for i := range writers {
			writing.Go(func() {
				for range each {
					begun.Add(1)
					storetest.Received(t, nodes[i%len(nodes)], in)
					storetest.Received(t, nodes[i%len(nodes)], in, func(m *store.NewMessage) { m.TestMode = true })
					storetest.Received(t, nodes[i%len(nodes)], other)
					ended.Add(1)
				}
			})
		}
		for _, s := range nodes {
			for range 2 {
				counting.Go(func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						if _, err := s.CountEvents(t.Context()); err != nil {
							t.Error(err)
						}
						least := ended.Load()
						if n := today(t, s, in.AccountID, in.Seq).Received; n < least || n > begun.Load() {
							t.Errorf("%d messages are counted of %d to %d", n, least, begun.Load())
						}
					}
				})
			}
		}
		writing.Wait()
		close(done)
		counting.Wait()
		want := store.Counts{Received: writers * each}
		check := func(when string) {
			t.Helper()
			for _, s := range nodes {
				if a, i := today(t, s, in.AccountID), today(t, s, in.AccountID, in.Seq); a != want || i != want {
					t.Errorf("%s: %+v of the account and %+v of the inbox, want %+v", when, a, i, want)
				}
				groups, err := s.InboxCounts(t.Context(), in.AccountID, 1, 10)
				if err != nil || len(groups) != 1 || groups[0].Counts != want {
					t.Errorf("%s: counts of inboxes %+v, %v", when, groups, err)
				}
			}
		}
		check("before all are counted")
		for _, s := range nodes {
			for n := 1; n > 0; {
				var err error
				if n, err = s.CountEvents(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		check("when all are counted")
		storetest.Received(t, nodes[0], in)
		want.Received++
		check("with one that is not counted")
		clock.Add(store.EventTTL + time.Hour)
		swept := 0
		for n := 1; n > 0; swept += n {
			var err error
			if n, err = nodes[0].Sweep(t.Context(), "events"); err != nil {
				t.Fatal(err)
			}
		}
		days, err := nodes[0].Stats(t.Context(), in.AccountID, nil, 32)
		if err != nil || days[1].Counts != want && days[0].Counts != want && days[2].Counts != want {
			t.Errorf("after %d events were deleted: %+v, %v", swept, days[:3], err)
		}
		if want := 3*writers*each + 1; swept != want {
			t.Errorf("%d events were deleted, want %d", swept, want)
		}
	})
}
