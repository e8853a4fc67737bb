package webhook_test

import (
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A receiver that learns the new secret some time after the rotation, and uses
// the old one until then, accepts every request.
func TestARotationUnderTrafficFailsNothing(t *testing.T) { // W8
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		const events, rotated, switched = 90, 30, 60
		in := storetest.Inbox(t, s)
		r := newReceiver(t)
		w, before := newEndpoint(t, s, in.AccountID, r.URL)
		var known atomic.Value
		known.Store(before)
		arrived := make(chan struct{}, 2*events)
		r.respond(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			if err := verify(postOf(req, string(body)), known.Load().(string)); err != nil { //nolint:forcetypeassert // nothing else is stored
				t.Error(err)
				w.WriteHeader(http.StatusUnauthorized)
			}
			arrived <- struct{}{}
		})
		await := func(n int) {
			for range n {
				select {
				case <-arrived:
				case <-time.After(patience):
					t.Fatal("an event did not arrive")
				}
			}
		}
		start(t, newDispatcher(t, s, time.Now))
		queue(t, s, in, rotated) // some are not sent yet
		_, after, err := s.RotateWebhook(t.Context(), in.AccountID, w.ID, nil, func(*store.Webhook) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		queue(t, s, in, switched-rotated)
		await(switched) // including those signed before the rotation
		known.Store(after)
		queue(t, s, in, events-switched)
		await(events - switched)
	})
}

// Both secrets sign for a day after a rotation, then only the new one.
func TestBothSecretsSignAfterARotation(t *testing.T) { // W8
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		clock := storetest.NewClock(begin)
		cfg.Now = clock.Now
		s := storetest.OpenConfig(t, cfg)
		r := newReceiver(t)
		in := storetest.Inbox(t, s)
		w, before := newEndpoint(t, s, in.AccountID, r.URL)
		d := newDispatcher(t, s, clock.Now)
		last := func() post {
			storetest.Received(t, s, in)
			runOnce(t, d, 1)
			got := r.got()
			return got[len(got)-1]
		}
		wantSigned := func(p post, secret string, want bool) {
			t.Helper()
			if err := verify(p, secret); want != (err == nil) {
				t.Errorf("signature %q: %v", p.signature, err)
			}
		}
		wantSigned(last(), before, true)
		_, after, err := s.RotateWebhook(t.Context(), in.AccountID, w.ID, nil, func(*store.Webhook) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		p := last()
		wantSigned(p, before, true)
		wantSigned(p, after, true)
		clock.Add(store.OldSecretTTL - time.Second)
		wantSigned(last(), before, true)
		clock.Add(2 * time.Second)
		p = last()
		wantSigned(p, before, false)
		wantSigned(p, after, true)
	})
}
