package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// ownServer is a PostgreSQL that the test may stop, with an empty database.
func ownServer(t *testing.T) (*testpg.Server, store.Config) {
	t.Helper()
	server, err := testpg.Start(t.Context(), testpg.Options{})
	if errors.Is(err, testpg.ErrNotFound) {
		testpg.Schema(t) // decides whether that is a failure
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	cfg := storetest.EmptyConfig(t, storetest.SQLite)
	cfg.Database = server.URL(testpg.DefaultDatabase)
	if _, err := store.Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	return server, cfg
}

// While connections to the database are cut repeatedly, a message is stored once
// if the call succeeds, and not at all if it fails.
func TestResultIsTrueWhenConnectionsAreCut(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	s, db := storetest.OpenConfig(t, cfg), openRaw(t, cfg)
	in := storetest.Inbox(t, s)
	const senders = 8
	var sending sync.WaitGroup
	var mu sync.Mutex
	results := map[string]error{}
	for sender := range senders {
		sending.Go(func() {
			for n := range callsWhileCut {
				if n%senders == sender { // in the middle of the calls of the others
					if _, err := db.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
						WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`); err != nil {
						t.Logf("cut by another sender: %v", err)
					}
				}
				subject := fmt.Sprintf("%d/%d", sender, n)
				m := storetest.NewReceived(in, func(m *store.NewMessage) { m.Subject = subject })
				_, err := s.AddReceived(t.Context(), []*store.NewMessage{m}, nil)
				if err != nil && !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("got %v, want ErrUnavailable", err)
				}
				mu.Lock()
				results[subject] = err
				mu.Unlock()
			}
		})
	}
	sending.Wait()

	stored := map[string]int{}
	for _, m := range every(t, s, store.MessageFilter{InboxSeq: in.Seq}, 100) {
		stored[m.Subject]++
	}
	passed := 0
	for subject, err := range results {
		want := 0
		if err == nil {
			want, passed = 1, passed+1
		}
		if stored[subject] != want {
			t.Errorf("message %s is stored %d times, but the call returned %v", subject, stored[subject], err)
		}
	}
	if passed == 0 || passed == len(results) {
		t.Errorf("%d of %d messages passed: no cut has met a call, or each", passed, len(results))
	}
	storetest.Received(t, s, in) // the store has recovered
}

// Connections that cannot be closed cleanly are not an error of the store: a
// program that is stopped after an outage exits cleanly.
func TestCloseWithoutAServerEnds(t *testing.T) {
	t.Parallel()
	server, cfg := ownServer(t)
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Inbox(t, s) // there are connections with work behind them
	if err := server.StopImmediate(); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("close says %v", err)
		}
	case <-time.After(tooLong):
		t.Error("close waits for the server")
	}
}
