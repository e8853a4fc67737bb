package store_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestNodesTakeTurns(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(time.Now())
		cfg.Now = clock.Now
		nodes := []*store.Store{storetest.OpenConfig(t, cfg)}
		if nodes[0].Engine() == "postgresql" {
			nodes = append(nodes, storetest.OpenConfig(t, cfg))
		}
		take := func(node int, work string, want bool) {
			t.Helper()
			got, err := nodes[node%len(nodes)].TakeTurn(t.Context(), work, time.Minute)
			if err != nil || got != want {
				t.Errorf("node %d gets the turn: %v, %v, want %v", node, got, err, want)
			}
		}
		for round := range 3 {
			take(round, "sweep", true)
			take(round, "sweep", false)
			take(round+1, "sweep", false)
			clock.Add(time.Minute - time.Millisecond)
			take(round+1, "sweep", false)
			clock.Add(time.Millisecond)
		}
		take(0, "another", true)
	})
}
