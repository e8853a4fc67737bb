package webhook_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

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
