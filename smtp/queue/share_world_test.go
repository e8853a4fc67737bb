package queue_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// hangingServers are the servers of the domains hangN.example, which accept
// connections and say nothing, and that of good.example.
type hangingServers struct {
	good  *smtptest.MX
	zones smtptest.Zones
	calls atomic.Int64 // of the hanging ones
}

func newHangingServers(t *testing.T, domains int) *hangingServers {
	t.Helper()
	l := smtptest.Listen(t, "127.0.0.1", "127.0.0.2")
	s := &hangingServers{good: smtptest.NewMX(t, smtptest.MXConfig{Listener: l[0]})}
	s.zones = smtptest.Zones{}.Domain("good.example", "127.0.0.1")
	for i := range domains {
		s.zones.Domain(hangs(i), "127.0.0.2")
	}
	smtptest.Script{Banner: smtptest.Hang}.Serve(t, &countingListener{l[1], &s.calls})
	return s
}

func hangs(i int) string { return fmt.Sprintf("hang%d.example", i) }

// other returns the world with the inbox of a new account.
func (w *world) other(t *testing.T) *world {
	t.Helper()
	other := *w
	other.inbox = storetest.Inbox(t, w.store)
	return &other
}

// waitDelivered waits until the message is delivered.
func (w *world) waitDelivered(t *testing.T, m store.Message) {
	t.Helper()
	waittest.Until(t, "the message is delivered", func() bool { return w.message(t, m).Status == store.MessageDelivered })
}

// The mail of an account goes out at once while the servers of another one hang in
// as many connections as one account may have.
func TestHangingServersOfOneAccountDelayNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const conns = 50
		s := newHangingServers(t, 2*conns)
		q := w.queue(t, s.good.Port(), s.zones, func(c *queue.Config) { c.Grace = time.Millisecond })
		for i := range 2 * conns {
			w.send(t, "ann@"+hangs(i))
		}
		stop := run(t, q)
		waittest.Until(t, "all connections of the account hang", func() bool { return s.calls.Load() == conns })

		w.waitDelivered(t, w.other(t).send(t, "bob@good.example"))

		stop()
		if n := s.calls.Load(); n != conns {
			t.Errorf("%d connections of the account hang, want %d", n, conns)
		}
	})
}

// When the servers of many accounts hang in all connections, one of these attempts ends
// for an account that waits.
func TestHangingServersOfManyAccountsDelayNoOther(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const all = 6 // half as many again as one account may have
		s := newHangingServers(t, all)
		q := w.queue(t, s.good.Port(), s.zones, func(c *queue.Config) { c.MaxConns, c.Grace = 4, time.Millisecond })
		var hung []store.Message
		for i := range all {
			hung = append(hung, w.other(t).send(t, "ann@"+hangs(i)))
		}
		stop := run(t, q)
		waittest.Until(t, "all connections hang", func() bool { return s.calls.Load() == all })
		w.clock.Add(time.Minute)

		w.waitDelivered(t, w.other(t).send(t, "bob@good.example"))

		stop()
		ended := 0
		for _, m := range hung {
			if r := w.message(t, m).Recipients[0]; r.LastResponse != nil && *r.LastResponse != "" {
				ended++
				wantState(t, r, store.RecipientQueued, "451 4.4.1 mx.hang")
			}
		}
		if ended != 1 {
			t.Errorf("%d attempts ended, want 1", ended)
		}
	})
}
