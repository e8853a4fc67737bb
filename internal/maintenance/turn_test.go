package maintenance_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/maintenance"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A node skips rounds during another node's turn, and runs one afterwards.
func TestRoundsAreDoneInTurn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var c clock
	var asked atomic.Int64
	now := func() time.Time {
		if asked.Add(1) == 500 { // after many checks whether it is this node's turn
			c.move(2 * time.Hour)
		}
		return c.now()
	}
	cfg := storetest.Config(t, storetest.PostgreSQL, storetest.WithNow(now))
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s, func(in *store.Inbox) { in.RetentionDays = 1 })
	storetest.Received(t, s, in)
	c.move(25 * time.Hour)
	if mine, err := s.TakeTurn(ctx, "delete old mail", time.Hour); !mine || err != nil {
		t.Fatalf("the first turn: %v, %v", mine, err)
	}
	before := asked.Load()
	deleted := &countingHandler{after: 1, then: cancel} // a round logs what it deleted
	r := maintenance.NewRetention(maintenance.RetentionConfig{Store: s, Every: 10 * time.Millisecond, Log: slog.New(deleted)})
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n < 500 {
		t.Errorf("mail was deleted after %d looks, while it was another node's turn (from %d on)", n, before)
	}
}
