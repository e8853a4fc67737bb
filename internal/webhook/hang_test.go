package webhook_test

import (
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// newSilent returns the host and port of a server that accepts connections and
// sends nothing.
func newSilent(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	return l.Addr().String()
}

// newHanging returns a receiver that hangs before or during its response.
func newHanging(t *testing.T, inTheMiddle bool) *receiver {
	t.Helper()
	release := make(chan struct{})
	r := newReceiver(t)
	r.respond(func(w http.ResponseWriter, req *http.Request) {
		if inTheMiddle {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-release:
		case <-req.Context().Done():
		}
	})
	t.Cleanup(func() { close(release) })
	return r
}

// queue creates n events of an inbox.
func queue(t *testing.T, s *store.Store, in store.Inbox, n int) {
	t.Helper()
	const mailsAtOnce = 16
	var g errgroup.Group
	g.SetLimit(mailsAtOnce)
	for range n {
		g.Go(func() error {
			_, err := s.AddReceived(t.Context(), []*store.NewMessage{storetest.NewReceived(in)}, nil)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// delays sends n events to r's endpoint, one after the other, and returns the
// sorted times from each change to its request.
func delays(t *testing.T, s *store.Store, in store.Inbox, r *receiver, n int) []time.Duration {
	t.Helper()
	arrived := make(chan time.Time, n)
	r.respond(func(http.ResponseWriter, *http.Request) { arrived <- time.Now() })
	took := make([]time.Duration, 0, n)
	for range n {
		begun := time.Now()
		storetest.Received(t, s, in)
		select {
		case at := <-arrived:
			took = append(took, at.Sub(begun))
		case <-time.After(patience):
			t.Fatal("an event did not arrive")
		}
	}
	slices.Sort(took)
	return took
}

// wantSoon requires every delay to be under a second.
func wantSoon(t *testing.T, took []time.Duration) {
	t.Helper()
	p99 := took[(len(took)*99+99)/100-1]
	t.Logf("%d events, median %v, p99 %v, longest %v", len(took), took[len(took)/2], p99, took[len(took)-1])
	if p99 >= time.Second {
		t.Errorf("p99 is %v", p99)
	}
}

// Endpoints that hang at any point of the exchange do not delay other
// endpoints, whatever their backlog.
func TestHangingEndpointsDelayNoOther(t *testing.T) { // W4
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		in := storetest.Inbox(t, s)
		for _, url := range []string{
			newUnconnectable(t), "https://" + newSilent(t), newHanging(t, false).URL, newHanging(t, true).URL,
		} {
			newEndpoint(t, s, in.AccountID, url)
		}
		queue(t, s, in, queuedForHanging)
		healthy := newReceiver(t)
		newEndpoint(t, s, in.AccountID, healthy.URL)
		start(t, newDispatcher(t, s, time.Now, func(c *webhook.Config) { c.Grace = time.Millisecond }))
		wantSoon(t, delays(t, s, in, healthy, healthyEvents))
	})
}
