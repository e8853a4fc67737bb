package webhook_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// The lag is reported for each event that an endpoint has taken, and for no other.
func TestLagIsReported(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T, s *store.Store) {
		r := newReceiver(t)
		in := storetest.Inbox(t, s)
		newEndpoint(t, s, in.AccountID, r.URL)
		newEndpoint(t, s, in.AccountID, newHanging(t, false).URL)
		storetest.Received(t, s, in)
		lags := make(chan time.Duration, 10)
		d := newDispatcher(t, s, func() time.Time { return time.Now().Add(time.Hour) }, func(c *webhook.Config) {
			c.OnAttempt = func(r webhook.AttemptReport) {
				if r.Taken {
					lags <- r.Lag
				}
			}
			c.Timeout = time.Second
		})

		runOnce(t, d, 2)

		if len(lags) != 1 {
			t.Fatalf("%d lags were reported, want 1", len(lags))
		}
		if lag := <-lags; lag < time.Hour-time.Minute || lag > time.Hour+time.Minute {
			t.Errorf("the lag is %v, want an hour", lag)
		}
	})
}
