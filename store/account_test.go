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
