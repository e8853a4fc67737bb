package webhook_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// patience is a generous timeout.
const patience = 60 * time.Second

// start runs the dispatcher. The returned function stops it and waits.
func start(t *testing.T, d *webhook.Dispatcher) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	var once atomic.Bool
	stop = func() {
		cancel()
		if !once.Swap(true) {
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

// A receiver that fails at random gets every event, although the dispatcher is
// stopped repeatedly in the middle of its work and two nodes send concurrently.
func TestNothingIsLost(t *testing.T) { // W9
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		const events = 200
		s := storetest.OpenConfig(t, cfg)
		var taken atomic.Int64
		r := newReceiver(t)
		r.respond(failSome(0.3, func() { taken.Add(1) }))
		in := storetest.Inbox(t, s)
		w, _ := newEndpoint(t, s, in.AccountID, r.URL)
		for range events {
			storetest.Received(t, s, in)
		}
		soon := func(c *webhook.Config) {
			c.Grace = time.Millisecond
			c.Jitter = func() float64 { return -9.99 } // 5 s become 5 ms, and so on
		}
		for round := 1; round <= 5; round++ {
			stop := start(t, newDispatcher(t, s, time.Now, soon))
			for until := time.Now().Add(patience); taken.Load() < int64(round*events/20) && time.Now().Before(until); {
				if _, err := newDispatcher(t, s, time.Now, soon).RunOnce(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			stop()
		}
		d := newDispatcher(t, s, time.Now, soon)
		for until := time.Now().Add(patience); ; {
			if _, err := d.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			left, err := s.ListDeliveries(t.Context(), w, store.DeliveryFilter{Status: store.DeliveryPending}, store.Page{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			if len(left.Rows) == 0 {
				break
			}
			if time.Now().After(until) {
				t.Fatal("deliveries stay pending")
			}
		}
		ids := map[string]bool{}
		for _, p := range r.got() {
			ids[p.id] = true
		}
		if len(ids) != events {
			t.Errorf("%d events arrived, want %d", len(ids), events)
		}
		cursor, well := "", 0
		for first := true; first || cursor != ""; first = false {
			l, err := s.ListDeliveries(t.Context(), w, store.DeliveryFilter{Status: store.DeliverySucceeded}, store.Page{Limit: 90, Cursor: cursor})
			if err != nil {
				t.Fatal(err)
			}
			well, cursor = well+len(l.Rows), l.Cursor
		}
		if well != events {
			t.Errorf("%d deliveries succeeded, want %d", well, events)
		}
	})
}

// failSome returns 500 for this share of the requests, at most twice per event,
// and calls took for the others.
func failSome(share float64, took func()) http.HandlerFunc {
	var mu sync.Mutex
	failed := map[string]int{}
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("webhook-id")
		mu.Lock()
		defer mu.Unlock()
		if failed[id] < 2 && rand.Float64() < share {
			failed[id]++
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		took()
	}
}

// A delivery that Run cancels at its end is due again at once, without a
// counted attempt.
func TestRunReleasesCancelledDeliveries(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		arrived := make(chan struct{}, 1)
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices a closed connection only after reading the body
			arrived <- struct{}{}
			<-r.Context().Done()
		}))
		t.Cleanup(server.Close)
		in := storetest.Inbox(t, s)
		w, _ := newEndpoint(t, s, in.AccountID, server.URL)
		stop := start(t, newDispatcher(t, s, time.Now, func(c *webhook.Config) { c.Grace = time.Millisecond }))
		storetest.Received(t, s, in)
		select {
		case <-arrived:
		case <-time.After(patience):
			t.Fatal("the event did not arrive")
		}
		stop()
		got := deliveries(t, s, w)[0]
		if got.Status != store.DeliveryPending || got.Attempts != 0 || got.Leased || got.NextAttemptAt.After(time.Now()) {
			t.Errorf("broken off: %+v", got)
		}
	})
}

func TestDeliveryOfADeletedEventEnds(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		r := newReceiver(t)
		in := storetest.Inbox(t, s)
		w, _ := newEndpoint(t, s, in.AccountID, r.URL)
		storetest.Received(t, s, in)
		d := newDispatcher(t, s, time.Now, func(c *webhook.Config) {
			c.Body = func(context.Context, store.Event) ([]byte, error) { return nil, store.ErrNotFound }
		})
		runOnce(t, d, 1)
		got := deliveries(t, s, w)[0]
		if got.Status != store.DeliveryFailed || *got.LastError != "the resource of the event was deleted" || len(r.got()) != 0 {
			t.Errorf("got %+v", got)
		}
		after, err := s.Webhook(t.Context(), in.AccountID, w.ID)
		if err != nil || after.FailingSince != nil {
			t.Errorf("the endpoint is held to have failed: %+v %v", after, err)
		}
	})
}
