package store_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func firstKey(secret string) store.Key {
	return store.Key{
		Name: "first", Hash: store.HashKey(secret), Prefix: "sk_live_", Hint: "…last", Mode: store.KeyLive,
		Scopes: store.JSON[[]string]{V: []string{"*"}}, AllowedIPs: store.JSON[[]string]{V: []string{}},
	}
}

func TestConcurrentBootstrapsCreateOneAccount(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		stores := []*store.Store{storetest.OpenConfig(t, cfg)}
		if stores[0].Engine() == string(storetest.PostgreSQL) { // SQLite belongs to one process
			stores = append(stores, storetest.OpenConfig(t, cfg))
		}
		var calls sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			calls.Go(func() {
				_, _, errs[i] = stores[i%len(stores)].Bootstrap(t.Context(), "home", firstKey("secret"), nil)
			})
		}
		calls.Wait()
		made := 0
		for _, err := range errs {
			switch {
			case err == nil:
				made++
			case !errors.Is(err, store.ErrState):
				t.Errorf("got %v, want ErrState", err)
			}
		}
		if made != 1 {
			t.Errorf("%d calls made the first account, want 1", made)
		}
		if n := count(t, cfg, "accounts"); n != 1 {
			t.Errorf("there are %d accounts, want 1", n)
		}
		if n := count(t, cfg, "api_keys"); n != 1 {
			t.Errorf("there are %d keys, want 1", n)
		}
	})
}

func TestBootstrapReturnsTheAccountAndItsKey(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		if _, err := s.FirstAccount(t.Context()); !errors.Is(err, store.ErrNotFound) {
			t.Fatalf("first account of an empty store: got %v, want ErrNotFound", err)
		}
		a, k, err := s.Bootstrap(t.Context(), "home", firstKey("secret"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.KeyByHash(t.Context(), store.HashKey("secret"))
		if err != nil {
			t.Fatal(err)
		}
		if got.ID != k.ID || got.AccountID != a.Seq {
			t.Errorf("the key is %s of account %d, want %s of %d", got.ID, got.AccountID, k.ID, a.Seq)
		}
		first, err := s.FirstAccount(t.Context())
		if err != nil || first.ID != a.ID || first.Name != "home" {
			t.Errorf("first account: %+v, %v", first, err)
		}
	})
}

func TestBootstrapAfterAnAccountChangesNothing(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		storetest.Account(t, s)
		if _, _, err := s.Bootstrap(t.Context(), "home", firstKey("secret"), nil); !errors.Is(err, store.ErrState) {
			t.Fatalf("got %v, want ErrState", err)
		}
		if _, err := s.KeyByHash(t.Context(), store.HashKey("secret")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the refused key: got %v, want ErrNotFound", err)
		}
	})
}
