package queue_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A node finds out that another one has claimed its mail, as when their clocks
// differ by more than a lease, and breaks the delivery off: it neither hands over
// the mail nor stores a result (N1).
func TestDeliveryIsBrokenOffWhenTheLeaseIsLost(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		if cfg.Now = time.Now; storetest.OpenConfig(t, cfg).Engine() != string(storetest.PostgreSQL) {
			t.Skip("one process alone has an SQLite database")
		}
		slow, fast := &world{store: storetest.OpenConfig(t, cfg)}, &world{}
		cfg.Now = func() time.Time { return time.Now().Add(time.Hour) }
		fast.store = storetest.OpenConfig(t, cfg)
		slow.inbox = storetest.Inbox(t, slow.store)
		hangs, release := make(chan struct{}), make(chan struct{})
		defer close(release)
		var calls atomic.Int64
		mx := smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(string) error {
			if calls.Add(1) == 1 {
				close(hangs)
				<-release
			}
			return nil
		}})
		zones := smtptest.Zones{}.Domain("out.example", mx.IP())
		clock := func(now func() time.Time, lease time.Duration) func(*queue.Config) {
			return func(c *queue.Config) { c.Lease, c.Now = lease, now }
		}
		m := slow.send(t, "bob@out.example")
		first := slow.queue(t, mx.Port(), zones, clock(time.Now, 400*time.Millisecond))
		ended := make(chan struct{})
		stop := run(t, first)
		<-hangs
		second := fast.queue(t, mx.Port(), zones, clock(cfg.Now, time.Minute))

		waittest.Until(t, "the other node claims the mail", func() bool { // a renewal may lock it at first
			n, err := second.RunOnce(t.Context())
			return err == nil && n == 1
		})

		go func() {
			defer close(ended)
			stop() // waits for what is under way
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second): // the grace is 15 s
			t.Error("the lost delivery continues")
		}
		r := slow.wantRecipient(t, m, store.RecipientDelivered, "250")
		if r.Attempts != 2 || len(mx.Messages()) != 1 {
			t.Errorf("%d attempts, %d messages", r.Attempts, len(mx.Messages()))
		}
	})
}
