package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A flood of registrations pushes out only applications that no person has approved,
// the oldest first, and none that a person may be about to approve.
func TestRegisteredApplicationsAreBounded(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		s, ctx := storetest.OpenConfig(t, cfg), t.Context()
		register := func(name string) string {
			t.Helper()
			clock.Add(time.Second)
			c, err := s.RegisterClient(ctx, name, []string{"https://client.example/"})
			if err != nil {
				t.Fatal(err)
			}
			return c.ID
		}
		flood := func(n int, apart time.Duration) {
			t.Helper()
			const q = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
				INSERT INTO oauth_clients (id, name, redirect_uris, created_at)
				SELECT $2 || i, 'flood', '["https://client.example/"]', cast($3 AS bigint) + i * cast($4 AS bigint) FROM n`
			openRaw(t, cfg).MustExec(q, n, fmt.Sprint("app_", apart), store.NewTime(clock.Now()), apart.Microseconds())
			clock.Add(time.Duration(n) * apart)
		}
		account := storetest.Account(t, s)
		approved, oldest, newer := register("approved"), register("oldest"), register("newer")
		grant := store.Grant{AccountID: account.Seq, ClientID: approved, CodeHash: []byte("code")}
		if err := s.AddGrant(ctx, grant); err != nil {
			t.Fatal(err)
		}
		flood(store.MaxWaitingClients-2, time.Second)
		register("the last of the flood")
		for id, want := range map[string]error{approved: nil, oldest: store.ErrNotFound, newer: nil} {
			if _, err := s.OAuthClient(ctx, id); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", id, err, want)
			}
		}
		waiting := register("waiting")
		clock.Add(time.Second)
		flood(store.MaxWaitingClients+10, 0)
		if _, err := s.RegisterClient(ctx, "the last of a sudden flood", []string{"https://client.example/"}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []error{nil, store.ErrNotFound} {
			if _, err := s.OAuthClient(ctx, waiting); !errors.Is(err, want) {
				t.Errorf("one that waits: %v, want %v", err, want)
			}
			clock.Add(store.ClientGrace)
			register("later")
		}
		grant.ClientID, grant.CodeHash = oldest, []byte("another code")
		if err := s.AddGrant(ctx, grant); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a grant of an application that is gone: %v", err)
		}
	})
}
