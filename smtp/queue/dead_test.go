package queue_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
)

// Mail for a domain that was found dead is deferred for a while without a connection;
// after that one mail at a time finds out, and when the domain is back the others
// follow (O5).
func TestDeadDomainIsDeferred(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1")[0]
		var calls, now, most atomic.Int64
		var back atomic.Bool
		smtptest.Script{Banner: "220 hi", Reply: func(line string) string {
			if strings.HasPrefix(line, "EHLO") {
				calls.Add(1)
				most.Store(max(most.Load(), now.Add(1)))
				defer now.Add(-1)
				if !back.Load() {
					return "421 4.3.2 overloaded"
				}
			}
			return smtptest.Replies(nil)(line)
		}}.Serve(t, l)
		q := w.queue(t, port(l), smtptest.Zones{}.Domain("out.example", "127.0.0.1"))
		first := w.send(t, "bob@out.example")
		round(t, q, 1)
		w.wantRecipient(t, first, store.RecipientQueued, "421 4.3.2 overloaded")

		w.clock.Add(20 * time.Second)
		second := w.send(t, "ann@out.example")
		round(t, q, 1)
		w.wantRecipient(t, second, store.RecipientQueued, "421 4.3.2 overloaded")
		if calls.Load() != 1 {
			t.Errorf("%d calls within the pause, want 1", calls.Load())
		}

		w.clock.Add(10 * time.Minute) // all is due, and the pause over
		var more []store.Message
		for range 8 {
			more = append(more, w.send(t, "eve@out.example"))
		}
		before := calls.Load()
		most.Store(0)
		round(t, q, 10)
		if n := calls.Load() - before; n != 1 || most.Load() != 1 {
			t.Errorf("%d connections, %d at a time, for ten messages to a dead domain", n, most.Load())
		}

		back.Store(true)
		w.clock.Add(20 * time.Minute)
		round(t, q, 10)
		for _, m := range append(more, first, second) {
			w.wantRecipient(t, m, store.RecipientDelivered, "250")
		}
	})
}

// A server that stops responding during a transaction delays only its own domain,
// for one timeout; further messages to it are deferred (O5).
func TestSilentServerIsDeferred(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1")[0]
		calls := &atomic.Int64{}
		smtptest.Script{Banner: "220 hi", Reply: smtptest.Replies(map[string]string{"RCPT": smtptest.Hang})}.Serve(t, &countingListener{l, calls})
		q := w.queue(t, port(l), smtptest.Zones{}.Domain("out.example", "127.0.0.1"), func(c *queue.Config) {
			c.Timeouts.Command, c.MaxPerDomain = 100*time.Millisecond, 1
		})
		var sent []store.Message
		for range 10 {
			sent = append(sent, w.send(t, "bob@out.example"))
		}
		round(t, q, 10)
		for _, m := range sent {
			w.wantRecipient(t, m, store.RecipientQueued, "451 4.4.1 mx.out.example: timed out")
		}
		if calls.Load() != 1 {
			t.Errorf("%d calls, want 1", calls.Load())
		}
	})
}

// A server that takes fewer connections than we make is not dead.
func TestServerWithFewConnectionsIsNotDead(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1")[0]
		var open atomic.Int64
		refused, inside := make(chan struct{}), make(chan struct{})
		var once sync.Once
		smtptest.Script{Banner: "220 hi", Reply: func(line string) string {
			switch {
			case strings.HasPrefix(line, "EHLO") && open.Add(1) == 2:
				<-inside
				once.Do(func() { close(refused) })
				return "421 4.7.0 too many connections"
			case strings.HasPrefix(line, "MAIL") && open.Load() < 3:
				select {
				case <-inside:
				default:
					close(inside)
				}
			case strings.HasPrefix(line, "RCPT"):
				<-refused
			}
			return smtptest.Replies(nil)(line)
		}}.Serve(t, l)
		q := w.queue(t, port(l), smtptest.Zones{}.Domain("out.example", "127.0.0.1"), func(c *queue.Config) { c.MaxPerDomain = 2 })
		var sent []store.Message
		for range 6 {
			sent = append(sent, w.send(t, "bob@out.example"))
		}
		round(t, q, 6)
		queued := 0
		for _, m := range sent {
			if w.message(t, m).Status == store.MessageQueued {
				queued++
			}
		}
		if queued != 1 {
			t.Errorf("%d of 6 messages are queued, want the one that was refused", queued)
		}
	})
}
