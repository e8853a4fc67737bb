package store_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// Not parallel: it reads all goroutines of the process.
func TestCloseLeavesNoGoroutine(t *testing.T) { //nolint:paralleltest // see above
	ours := func() []string {
		buf := make([]byte, 1<<20)
		var found []string
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "postroom/store.(") || strings.Contains(g, "lib/pq.") || strings.Contains(g, "database/sql.(*DB)") {
				found = append(found, g)
			}
		}
		return found
	}
	for _, e := range storetest.Engines(t) {
		cfg := storetest.Config(t, e)
		before := len(ours())
		s, err := store.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		in := storetest.Inbox(t, s)
		storetest.Received(t, s, in)
		if len(ours()) <= before {
			t.Errorf("%s: no goroutine of an open store was found: the test looks for the wrong ones", e)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		waittest.Until(t, string(e)+": all goroutines gone", func() bool { return len(ours()) <= before })
	}
}

// Fifty writers of every kind, beside readers: no one ever hears of a lock. Not parallel, as
// TestDraftWritersNeverMeetALock.
func TestManyWritersNeverMeetALock(t *testing.T) { //nolint:paralleltest // see above
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		before := deadlocks(t, cfg)
		account := storetest.Account(t, s).Seq
		inboxes := make([]store.Inbox, 10)
		for i := range inboxes {
			inboxes[i] = storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = account })
		}
		const rounds = 20
		var workers sync.WaitGroup
		work := func(do func(round int) error) {
			workers.Go(func() {
				for round := range rounds {
					if err := do(round); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		ctx := t.Context()
		for w := range 10 {
			in := inboxes[w]
			work(func(int) error {
				_, err := s.AddReceived(ctx, []*store.NewMessage{storetest.NewReceived(in), storetest.NewReceived(inboxes[(w+1)%10])}, nil)
				return err
			})
			work(func(int) error {
				_, err := s.Enqueue(ctx, storetest.NewSent(in, []string{"a@out.example", "b@out.example"}), nil)
				return err
			})
			work(func(round int) error {
				_, err := s.UpdateInbox(ctx, account, in.ID, func(in *store.Inbox) error { in.RetentionDays = 1 + round%30; return nil })
				return err
			})
			work(func(int) error {
				cs, err := s.ClaimRecipients(ctx, 5, time.Hour, nil)
				for _, c := range cs {
					err = errors.Join(err, s.RecordAttempt(ctx, attempt(c, store.RecipientDelivered)))
				}
				return err
			})
			work(func(int) error {
				made, err := s.CreateInbox(ctx, storetest.NewInbox(func(in *store.Inbox) { in.AccountID = account }), nil)
				if err == nil {
					_, err = s.DeleteInbox(ctx, account, made.ID)
				}
				return err
			})
			work(func(int) error {
				_, err := s.ListMessages(ctx, store.MessageFilter{AccountID: account}, store.Page{Limit: 20})
				return err
			})
		}
		workers.Wait()
		for table, want := range map[string]int{"messages": 600, "recipients": 400} {
			if n := count(t, cfg, table); n != want {
				t.Errorf("%s holds %d rows, want %d", table, n, want)
			}
		}
		if n := deadlocks(t, cfg) - before; n > 0 {
			t.Errorf("%d deadlocks", n)
		}
	})
}

// A full disk defers mail; nothing else fails, and mail is received again
// when there is space.
func TestFullDatabaseIsErrFull(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	storetest.Received(t, s, in)
	limit := func(pages string) {
		t.Helper()
		if _, err := store.Pragma(t.Context(), s, "max_page_count="+pages); err != nil {
			t.Fatal(err)
		}
	}
	pages, err := store.Pragma(t.Context(), s, "page_count")
	if err != nil {
		t.Fatal(err)
	}
	limit(pages)
	large := func(m *store.NewMessage) { m.Content.Raw = randomBytes(64 << 10) }
	for range 3 {
		_, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in, large)}, nil)
		if !errors.Is(err, store.ErrFull) {
			t.Errorf("without room: got %v, want ErrFull", err)
		}
	}
	limit("1000000")
	storetest.Received(t, s, in, large)
	if n := len(every(t, s, store.MessageFilter{InboxSeq: in.Seq}, 10)); n != 2 {
		t.Errorf("%d messages are stored, want 2", n)
	}
}
