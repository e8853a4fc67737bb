package queue_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func (w *world) email(t *testing.T, e store.Email) store.Email {
	t.Helper()
	got, err := w.store.Email(t.Context(), e.AccountID, nil, e.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// release queues the scheduled emails that are due.
func (w *world) release(t *testing.T) {
	t.Helper()
	if _, err := w.store.ReleaseScheduled(t.Context(), store.DueRules{MailDomain: storetest.Domain}); err != nil {
		t.Fatal(err)
	}
}

// A scheduled email is sent when it is due, from the address in its
// header, and not before (O13).
func TestScheduledEmailIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		due := store.NewTime(start.Add(time.Hour))
		e := storetest.Email(t, w.store, w.inbox.AccountID, []string{"bob@out.example"}, func(e *store.NewEmail) { e.ScheduledAt = &due })
		w.clock.Add(time.Hour - time.Second)
		w.release(t)
		round(t, q, 0)
		if got := w.email(t, e); got.Status != store.EmailScheduled || len(mx.Messages()) != 0 {
			t.Fatalf("%s before its time, %d messages", got.Status, len(mx.Messages()))
		}
		w.clock.Add(time.Second)
		w.release(t)
		round(t, q, 1)
		if got := w.email(t, e); got.Status != store.MessageDelivered || got.DeliveredAt == nil {
			t.Errorf("%s in the end, delivered at %v", got.Status, got.DeliveredAt)
		}
		if messages := mx.Messages(); len(messages) != 1 || messages[0].From != "hello@"+storetest.Domain {
			t.Errorf("messages: %+v", messages)
		}
	})
}

// Marketing is tried for three days, everything else for one.
func TestMarketingIsTriedForLonger(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(string) error { return smtptest.Refuse(450, [3]int{4, 2, 0}, "later") }})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		to := []string{"bob@out.example"}
		plain := storetest.Email(t, w.store, w.inbox.AccountID, to)
		marketing := storetest.Email(t, w.store, w.inbox.AccountID, to, func(e *store.NewEmail) { e.Category = store.CategoryMarketing })
		for _, tt := range []struct {
			after            time.Duration
			plain, marketing store.MessageStatus
		}{
			{0, store.EmailSending, store.EmailSending},
			{25 * time.Hour, store.MessageBounced, store.EmailSending},
			{48 * time.Hour, store.MessageBounced, store.MessageBounced},
		} {
			w.clock.Add(tt.after)
			if _, err := q.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			if p, m := w.email(t, plain).Status, w.email(t, marketing).Status; p != tt.plain || m != tt.marketing {
				t.Errorf("%s later: %s and %s, want %s and %s", tt.after, p, m, tt.plain, tt.marketing)
			}
		}
	})
}
