package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
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

// A crowd of mail for domains that are dead, one that refuses connections and one
// that says nothing, does not hold up the mail for others (O5).
func TestDeadDomainsDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		w := &world{store: storetest.OpenConfig(t, cfg)}
		w.inbox = storetest.Inbox(t, w.store)
		l := smtptest.Listen(t, "127.0.0.1", "127.0.0.2", "127.0.0.3")
		_ = l[2].Close() // refuses
		smtptest.Script{Banner: smtptest.Hang}.Serve(t, l[1])
		book := arrivals{sent: map[string]time.Time{}, took: map[string]time.Duration{}}
		good := smtptest.NewMX(t, smtptest.MXConfig{Listener: l[0], Data: book.arrived})
		zones := smtptest.Zones{}.Domain("good.example", "127.0.0.1").Domain("silent.example", "127.0.0.2").Domain("gone.example", "127.0.0.3")
		q := w.queue(t, good.Port(), zones, func(c *queue.Config) { c.Grace = time.Millisecond })
		crowd(t, crowdOfDead, func(i int) {
			w.send(t, fmt.Sprintf("user%d@%s.example", i, []string{"silent", "gone"}[i%2]))
		})
		stop := run(t, q)
		crowd(t, amongDead, func(i int) {
			to := fmt.Sprintf("user%d@good.example", i)
			book.send(to)
			w.send(t, to)
		})
		good.Wait(t, amongDead)
		stop()
		p99 := book.percentile(99)
		t.Logf("%d messages beside %d for dead domains: p50 %v, p99 %v", amongDead, crowdOfDead, book.percentile(50), p99)
		if p99 > 5*time.Second {
			t.Errorf("p99 is %v, want less than 5 s", p99)
		}
	})
}

// crowd calls do n times, eight at a time.
func crowd(t *testing.T, n int, do func(i int)) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(8)
	for i := range n {
		g.Go(func() error { do(i); return context.Cause(t.Context()) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// arrivals measures how long mail takes to the server.
type arrivals struct {
	mu   sync.Mutex
	sent map[string]time.Time
	took map[string]time.Duration
}

func (a *arrivals) send(to string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent[to] = time.Now()
}

func (a *arrivals) arrived(m smtptest.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, to := range m.To {
		a.took[to] = time.Since(a.sent[to])
	}
	return nil
}

func (a *arrivals) percentile(p int) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []time.Duration
	for _, d := range a.took {
		all = append(all, d)
	}
	slices.Sort(all)
	return all[(len(all)-1)*p/100]
}
