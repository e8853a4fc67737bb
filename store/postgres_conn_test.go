package store_test

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// receive stores a message and reports how long that took.
func receive(t *testing.T, s *store.Store, in store.Inbox) (time.Duration, error) {
	t.Helper()
	begin := time.Now()
	_, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil)
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	return time.Since(begin), err
}

// Every session has limits for what it may hold up, unless the address says
// otherwise.
func TestSessionsHaveLimits(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	check := func(cfg store.Config, want map[string]string) {
		t.Helper()
		s := storetest.OpenConfig(t, cfg)
		for name, want := range want {
			if got, err := store.SessionSetting(t.Context(), s, name); err != nil || got != want {
				t.Errorf("%s is %q (%v), want %q", name, got, err, want)
			}
		}
	}
	check(cfg, map[string]string{"idle_in_transaction_session_timeout": "5s", "lock_timeout": "5s"})
	cfg.Database += "&lock_timeout=7s&options=" + url.QueryEscape("-c idle_in_transaction_session_timeout=8s")
	check(cfg, map[string]string{"idle_in_transaction_session_timeout": "8s", "lock_timeout": "7s"})
}

// A node that stalls in the middle of a transaction loses the transaction, and gets an
// error that the database is unavailable.
func TestStalledTransactionIsEnded(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	slow := cfg
	slow.Database += "&idle_in_transaction_session_timeout=200ms"
	s, db := storetest.OpenConfig(t, slow), openRaw(t, cfg)
	err := store.StandStill(t.Context(), s, func() {
		waittest.Until(t, "the server has ended the transaction", func() bool {
			var n int
			err := db.Get(&n, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'`)
			return err == nil && n == 0
		})
	})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

// While another session holds an inbox, mail for it is refused, and mail for
// others is stored.
func TestOnlyMailForAHeldInboxIsRefused(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	quick := cfg
	quick.Database += "&lock_timeout=500ms"
	s := storetest.OpenConfig(t, quick)
	held := storetest.Inbox(t, s)
	tx := openRaw(t, cfg).MustBegin()
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	tx.MustExec(`SELECT 1 FROM inboxes WHERE seq = $1 FOR UPDATE`, held.Seq)

	ctx, done := context.WithCancel(t.Context())
	var senders sync.WaitGroup
	senders.Go(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if _, err := receive(t, s, held); err == nil {
				t.Error("mail for the held inbox was stored")
			}
			<-tick.C
		}
	})
	var mu sync.Mutex
	stored, longest := 0, time.Duration(0)
	for range 20 {
		in := storetest.Inbox(t, s)
		senders.Go(func() {
			for ctx.Err() == nil {
				took, err := receive(t, s, in)
				if err != nil {
					t.Errorf("mail for another inbox: %v", err)
				}
				mu.Lock()
				stored, longest = stored+1, max(longest, took)
				enough := stored >= 1000
				mu.Unlock()
				if enough {
					done()
				}
			}
		})
	}
	begin := time.Now()
	senders.Wait()
	done()
	t.Logf("%d messages for other inboxes in %v, the longest took %v", stored, time.Since(begin), longest)
	if longest > 10*time.Second {
		t.Errorf("one of them took %v", longest)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "mail for the inbox is stored again", func() bool {
		_, err := receive(t, s, held)
		return err == nil
	})
}
