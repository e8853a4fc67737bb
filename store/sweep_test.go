package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A node whose clock was ahead may have written many rows that are not old for
// a long time. What is old behind them goes.
func TestSweepPassesOverRowsThatAreNotOld(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now())
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		in := storetest.Inbox(t, s)
		w := store.Webhook{AccountID: in.AccountID, URL: "https://hooks.example/", Active: true}
		if _, _, err := s.CreateWebhook(t.Context(), w, nil); err != nil {
			t.Fatal(err)
		}
		receive := func(n int) {
			t.Helper()
			copies := make([]*store.NewMessage, n)
			for i := range copies {
				copies[i] = storetest.NewReceived(in)
			}
			if _, err := s.AddReceived(t.Context(), copies, nil); err != nil {
				t.Fatal(err)
			}
		}
		receive(600)
		db := openRaw(t, cfg)
		tables := map[string]func() (int, error){
			"events":             func() (int, error) { return s.Sweep(t.Context(), "events") },
			"webhook_deliveries": func() (int, error) { return s.Sweep(t.Context(), "webhook_deliveries") },
		}
		for table := range tables {
			db.MustExec(`UPDATE `+table+` SET created_at = $1`, clock.Now().Add(100*day).UnixMicro())
		}
		receive(5)
		clock.Add(31 * day)
		for table, sweep := range tables {
			all := 0
			for n := 1; n > 0; all += n {
				var err error
				if n, err = sweep(); err != nil {
					t.Fatal(err)
				}
			}
			if all != 5 {
				t.Errorf("swept %d of %s, want the 5 that are old", all, table)
			}
		}
		clock.Add(100 * day)
		for table, sweep := range tables {
			if n, err := sweep(); n != 500 || err != nil {
				t.Errorf("swept %d of %s, %v, want 500 of those that became old", n, table, err)
			}
		}
	})
}

// blocked waits until a statement in the database waits for a lock.
func blocked(t *testing.T, db *sqlx.DB) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		var n int
		err := db.Get(&n, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}

// An inbox is deleted at once, whatever its cached responses take.
func TestDeletingAnInboxDoesNotWaitForItsCachedResponses(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s)
	m := storetest.Received(t, s, in)
	other := storetest.Received(t, s, storetest.Inbox(t, s))
	db := openRaw(t, cfg)
	const cached = `INSERT INTO idempotency (account_id, operation, key, body_hash, status, kind, body, resource_id, created_at)
		SELECT $1, 'POST /', cast(i AS text), '', 201, '', '{}', $2, 0 FROM generate_series(1, 1200) AS i`
	db.MustExec(cached, in.AccountID, m.ID)
	db.MustExec(cached, other.AccountID, other.ID)
	held := db.MustBegin()
	defer func() { _ = held.Rollback() }() // it was only read
	held.MustExec(`SELECT 1 FROM idempotency WHERE resource_id = $1 FOR UPDATE`, m.ID)
	ended := make(chan error, 1)
	go func() {
		_, err := s.DeleteInbox(t.Context(), in.AccountID, in.ID)
		ended <- err
	}()
	blocked(t, db)
	if _, err := s.NewestIn(t.Context(), in.Seq); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("while its cached responses are locked, the inbox is there: %v", err)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := db.Select(&left, `SELECT DISTINCT resource_id FROM idempotency`); err != nil || len(left) != 1 || left[0] != other.ID {
		t.Errorf("cached responses of %v are left, %v", left, err)
	}
}

// The inboxes of a domain are suspended some hundred at a time.
func TestDeletingADomainSuspendsItsInboxesInSteps(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s := storetest.OpenConfig(t, cfg)
	first := storetest.Inbox(t, s, func(in *store.Inbox) { in.Address = "first@many.example" })
	d, err := s.CreateDomain(t.Context(), store.Domain{AccountID: first.AccountID, Name: "many.example", Token: "t"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	db := openRaw(t, cfg)
	db.MustExec(`INSERT INTO inboxes (account_id, id, address, name, domain, send_policy, status, retention_days, metadata, created_at, updated_at)
		SELECT account_id, 'ibx_' || i, i || '@many.example', cast(i AS text), domain, send_policy, status, retention_days, metadata, created_at, updated_at
		FROM inboxes, generate_series(1, 1100) AS i WHERE seq = $1`, first.Seq)
	held := db.MustBegin()
	defer func() { _ = held.Rollback() }() // it was only read
	held.MustExec(`SELECT 1 FROM inboxes WHERE id = 'ibx_700' FOR UPDATE`)
	ended := make(chan error, 1)
	go func() { ended <- s.DeleteDomain(t.Context(), first.AccountID, d.ID) }()
	blocked(t, db)
	count := func() (n int) {
		t.Helper()
		if err := db.Get(&n, `SELECT count(*) FROM inboxes WHERE domain = 'many.example' AND status = 'suspended'`); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := count(); n != 500 {
		t.Errorf("%d inboxes are suspended while the second 500 wait", n)
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 1101 {
		t.Errorf("%d inboxes are suspended, want 1101", n)
	}
	if _, err := s.Domain(t.Context(), first.AccountID, d.ID); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the domain is there: %v", err)
	}
}

// Mail that refers to two large threads does not make them one: moving the
// messages would hold up other mail.
func TestLargeThreadsAreNotTied(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		for _, tt := range []struct{ size, want int }{{150, 1}, {201, 2}} {
			in := storetest.Inbox(t, s)
			receive := func(m threadMail, n int) {
				t.Helper()
				copies := make([]*store.NewMessage, n)
				for i := range copies {
					copies[i] = storetest.NewReceived(in, m.edit)
				}
				if _, err := s.AddReceived(t.Context(), copies, nil); err != nil {
					t.Fatal(err)
				}
			}
			receive(threadMail{id: "<a@x>"}, 1)
			receive(threadMail{reply: "<a@x>"}, tt.size-1)
			receive(threadMail{reply: "<tie@x>"}, tt.size)
			receive(threadMail{id: "<tie@x>", reply: "<a@x>"}, 1)
			threads := map[string]int{}
			for _, m := range every(t, s, store.MessageFilter{InboxSeq: in.Seq}, 100) {
				threads[m.ThreadID]++
			}
			if len(threads) != tt.want {
				t.Errorf("two threads of %d messages became %v, want %d", tt.size, fmt.Sprint(threads), tt.want)
			}
		}
	})
}
