package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

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
			if stopped, ok := errors.AsType[*store.Refused](err); !ok || stopped.Of != scope {
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
