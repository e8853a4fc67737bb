package queue_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
)

// A message that a server accepts without a reply is sent once more, with the
// same bytes, so that the server can detect the duplicate. It is counted (O4).
func TestMessageWithoutAReplyIsSentOnceMore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, end := range []string{smtptest.Hang, smtptest.Close} {
			l := smtptest.Listen(t, "127.0.0.1")[0]
			var mu sync.Mutex
			var taken []string
			smtptest.Script{Banner: "220 hi", Reply: func(line string) string {
				if !strings.Contains(line, "\r\n") {
					return smtptest.Replies(nil)(line)
				}
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, line)
				if len(taken) == 1 {
					return end
				}
				return "250 2.0.0 ok"
			}}.Serve(t, l)
			q := w.queue(t, port(l), smtptest.Zones{}.Domain("out.example", "127.0.0.1"),
				func(c *queue.Config) { c.Timeouts.Done = 200 * time.Millisecond })
			m := w.send(t, "bob@out.example")

			round(t, q, 1)
			w.wantRecipient(t, m, store.RecipientQueued, "451 4.4.1 mx.out.example")
			if n := q.Tally().InDoubt; n != 1 {
				t.Errorf("counted %d times", n)
			}
			w.clock.Add(2 * time.Minute)
			round(t, q, 1)
			w.wantRecipient(t, m, store.RecipientDelivered, "250 2.0.0")
			w.clock.Add(24 * time.Hour)
			round(t, q, 0)

			mu.Lock()
			if len(taken) != 2 || taken[0] != taken[1] || !strings.Contains(taken[0], m.HeaderID) {
				t.Errorf("the server has %d messages, the same: %v", len(taken), len(taken) == 2 && taken[0] == taken[1])
			}
			mu.Unlock()
			if n := q.Tally().InDoubt; n != 1 {
				t.Errorf("counted %d times in the end", n)
			}
		}
	})
}
