package queue_test

import (
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
)

func withFeedback(t *testing.T) func(*queue.Config) {
	t.Helper()
	return func(c *queue.Config) { c.Feedback = &queue.Feedback{Signer: newFeedback(t, "k")} }
}

// A message is sent to its recipients one after the other, and each result is
// recorded before the next one finishes: if the process dies, delivered
// recipients do not get it again (C4).
func TestEachRecipientIsRecordedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var m store.Message
		taken := 0
		mx := smtptest.NewMX(t, smtptest.MXConfig{Data: func(smtptest.Message) error {
			known := func() (n int) {
				for _, r := range w.message(t, m).Recipients {
					if r.Status == store.RecipientDelivered {
						n++
					}
				}
				return n
			}
			for end := time.Now().Add(10 * time.Second); known() < taken; {
				if time.Now().After(end) {
					t.Errorf("of %d recipients that were served %d are recorded", taken, known())
					break
				}
			}
			taken++
			return nil
		}})
		m = w.send(t, "ann@out.example", "bob@out.example", "cid@out.example")
		round(t, w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()), withFeedback(t)), 3)
		if n := len(mx.Messages()); n != 3 {
			t.Errorf("%d messages arrived", n)
		}
	})
}

// A recipient that a connection did not reach before its limit was not tried: the
// delays between attempts start with the first attempt.
func TestUnservedRecipientIsNotCountedAsTried(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()), withFeedback(t),
			func(c *queue.Config) { c.MessagesPerConn = 1 })
		m := w.send(t, "ann@out.example", "bob@out.example", "cid@out.example")
		for left := 3; left > 0; left-- {
			round(t, q, left)
		}
		for _, r := range w.message(t, m).Recipients {
			if r.Status != store.RecipientDelivered || r.Attempts != 1 {
				t.Errorf("%s is %s after %d attempts", r.Email, r.Status, r.Attempts)
			}
		}
	})
}
