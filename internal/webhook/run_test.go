package webhook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
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
