package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// H14: concurrent callers, on two nodes where possible, get exactly the limit,
// and a caller that waits as long as the result says succeeds.
func TestRateLimitIsExact(t *testing.T) {
	t.Parallel()
	const limit = 600
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(noon)
		cfg.Now = clock.Now
		nodes := []*store.Store{storetest.OpenConfig(t, cfg)}
		if nodes[0].Engine() == string(storetest.PostgreSQL) {
			nodes = append(nodes, storetest.OpenConfig(t, cfg))
		}
		var passed atomic.Int64
		var calls sync.WaitGroup
		for i := range 8 {
			calls.Go(func() {
				for range 100 {
					r, err := nodes[i%len(nodes)].TakeRate(t.Context(), store.RateCalls, "key_1", limit)
					if err != nil {
						t.Error(err)
						return
					}
					if !r.Refused {
						passed.Add(1)
					}
				}
			})
		}
		calls.Wait()
		if passed.Load() != limit {
			t.Errorf("%d of 800 calls passed, want %d", passed.Load(), limit)
		}
		s := nodes[len(nodes)-1]
		want := store.Rate{Ends: noon.Add(store.RateWindow), Refused: true}
		wantRate(t, s, "key_1", limit, want)
		wantRate(t, s, "key_2", limit, store.Rate{Left: limit - 1, Ends: want.Ends})
		clock.Add(store.RateWindow)
		wantRate(t, s, "key_1", limit, store.Rate{Left: limit - 1, Ends: want.Ends.Add(store.RateWindow)})
	})
}

func wantRate(t *testing.T, s *store.Store, who string, limit int, want store.Rate) {
	t.Helper()
	got, err := s.TakeRate(t.Context(), store.RateCalls, who, limit)
	if err != nil {
		t.Fatal(err)
	}
	if got.Left != want.Left || got.Refused != want.Refused || !got.Ends.Equal(want.Ends) {
		t.Errorf("%s: got %+v, want %+v", who, got, want)
	}
}

// Nodes whose clocks differ by some seconds share a window all the same.
func TestRateLimitOfNodesWithOtherClocks(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	clock := storetest.NewClock(noon)
	cfg.Now = clock.Now
	behind := cfg
	behind.Now = func() time.Time { return clock.Now().Add(-5 * time.Second) }
	one, two := storetest.OpenConfig(t, cfg), storetest.OpenConfig(t, behind)
	ends := noon.Add(store.RateWindow)
	wantRate(t, one, "k", 3, store.Rate{Left: 2, Ends: ends})
	wantRate(t, two, "k", 3, store.Rate{Left: 1, Ends: ends})
	wantRate(t, one, "k", 3, store.Rate{Left: 0, Ends: ends})
	wantRate(t, two, "k", 3, store.Rate{Ends: ends, Refused: true})
}

// Addresses are an attacker's to choose: they must not fill the memory.
func TestRateLimitOfManyAddresses(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t, storetest.WithNow(func() time.Time { return noon }))
	take := func(who string) store.Rate {
		r, err := s.TakeRate(t.Context(), store.RateAddress, who, 2)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for i := range store.MaxAddresses {
		if r := take(fmt.Sprint(i)); r.Left != 1 {
			t.Fatalf("address %d has %d left", i, r.Left)
		}
	}
	for i, refused := range []bool{false, false, true, true} {
		if r := take(fmt.Sprintf("late %d", i)); r.Refused != refused {
			t.Errorf("late address %d: refused %t", i, r.Refused)
		}
	}
	if r := take("7"); r.Refused {
		t.Error("an address that is counted by itself is refused")
	}
	wantRate(t, s, "key_1", 2, store.Rate{Left: 1, Ends: noon.Add(store.RateWindow)})
}

func TestEndedRatesAreForgotten(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(noon)
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		for i := range 5 {
			if _, err := s.TakeRate(t.Context(), store.RateAddress, fmt.Sprint(i), 1); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []int{5, 0} {
			n, err := s.SweepRates(t.Context())
			if err != nil || n != want {
				t.Errorf("%d windows are left, want %d: %v", n, want, err)
			}
			clock.Add(3 * store.RateWindow)
		}
	})
}
