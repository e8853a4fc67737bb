package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A stop holds back the message whose delivery has begun, and what is queued and
// scheduled, until sending resumes.
func TestStopHoldsStartedDeliveries(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		w := newWorld(t, cfg)
		for name, scope := range map[string]string{"account": store.StopAccount, "inbox": w.inbox.ID, "key": "key_a"} {
			var stop sync.Once
			mx := smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(string) error {
				stop.Do(func() {
					if _, err := w.store.Stop(context.Background(), w.inbox.AccountID, scope); err != nil {
						t.Error(err)
					}
				})
				return nil
			}})
			q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
			var ms []store.Message
			for i := range 3 {
				ms = append(ms, storetest.Sent(t, w.store, w.inbox, []string{fmt.Sprintf("r%d@out.example", i)}, func(m *store.NewMessage) {
					m.Senders = []store.Sender{{ID: "key_a"}}
				}))
			}
			for range 4 {
				if _, err := q.RunOnce(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if n := len(mx.Messages()); n != 0 {
				t.Errorf("%s: %d messages left after the stop", name, n)
			}
			_, err := w.store.Enqueue(t.Context(), storetest.NewSent(w.inbox, []string{"late@out.example"}, func(m *store.NewMessage) {
				m.Senders = []store.Sender{{ID: "key_a"}}
			}), nil)
			if stopped, ok := errors.AsType[*store.StoppedError](err); !ok || stopped.Scope != scope {
				t.Errorf("%s: a send after the stop: %v", name, err)
			}
			storetest.Received(t, w.store, w.inbox)
			if scope != store.StopAccount { // the rest of the account goes on
				other := storetest.Inbox(t, w.store, func(in *store.Inbox) { in.AccountID = w.inbox.AccountID })
				storetest.Sent(t, w.store, other, []string{"other@out.example"})
				round(t, q, 1)
				if n := len(mx.Messages()); n != 1 {
					t.Errorf("%s: %d messages of another inbox left, want 1", name, n)
				}
			}
			before := len(mx.Messages())
			if _, err := w.store.Resume(t.Context(), w.inbox.AccountID, scope); err != nil {
				t.Fatal(err)
			}
			round(t, q, 3)
			if n := len(mx.Messages()) - before; n != 3 {
				t.Errorf("%s: %d messages left after resuming, want 3", name, n)
			}
			for _, m := range ms {
				if r := w.message(t, m).Recipients[0]; r.Status != store.RecipientDelivered || r.Attempts != 1 {
					t.Errorf("%s: %s after %d attempts", name, r.Status, r.Attempts)
				}
			}
		}
	})
}

// Nothing leaves any node later than a second after a stop.
func TestStopAppliesToAllNodes(t *testing.T) {
	t.Parallel()
	const each = 120
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		w := newWorld(t, cfg)
		var stopped atomic.Int64 // nanoseconds; 0 while sending goes on
		var left, late atomic.Int64
		mx := smtptest.NewMX(t, smtptest.MXConfig{Data: func(smtptest.Message) error {
			left.Add(1)
			if at := stopped.Load(); at != 0 && time.Now().UnixNano()-at > int64(time.Second) {
				late.Add(1)
			}
			return nil
		}})
		zones := smtptest.Zones{}.Domain("out.example", mx.IP())
		queues := []*queue.Queue{w.queue(t, mx.Port(), zones)}
		for w.store.Engine() == string(storetest.PostgreSQL) && len(queues) < 3 {
			node := *w
			cfg.Now = w.clock.Now
			node.store = storetest.OpenConfig(t, cfg)
			queues = append(queues, node.queue(t, mx.Port(), zones))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var nodes sync.WaitGroup
		defer nodes.Wait()
		defer cancel()
		for _, q := range queues {
			nodes.Go(func() {
				for ctx.Err() == nil {
					if _, err := q.RunOnce(ctx); err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		until := func(what string, done func() bool) {
			for !done() {
				if t.Failed() || t.Context().Err() != nil {
					t.Fatalf("waiting for %s", what)
				}
				<-tick.C
			}
		}
		for range stopRounds {
			before := left.Load()
			for i := range each {
				storetest.Sent(t, w.store, w.inbox, []string{fmt.Sprintf("r%d@out.example", i)})
			}
			until("the first to leave", func() bool { return left.Load() > before })
			if _, err := w.store.Stop(t.Context(), w.inbox.AccountID, store.StopAccount); err != nil {
				t.Fatal(err)
			}
			stopped.Store(time.Now().UnixNano())
			until("the queue to wait", func() bool {
				next, err := w.store.NextDue(t.Context(), nil)
				return err == nil && next == nil
			})
			stopped.Store(0)
			if _, err := w.store.Resume(t.Context(), w.inbox.AccountID, store.StopAccount); err != nil {
				t.Fatal(err)
			}
			until("the rest", func() bool { return left.Load() == before+each })
		}
		if n := late.Load(); n != 0 {
			t.Errorf("%d of %d messages left later than a second after a stop", n, left.Load())
		}
	})
}
