package queue_test

import (
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
)

// A server that takes mail from strangers at their second try, some minutes
// later, gets that try: by the schedule, from the same sender for the same
// recipient. Meanwhile mail for those who know us goes there as usual.
func TestGreylisting(t *testing.T) {
	const wait = 5 * time.Minute
	tests := []struct {
		name string
		at   func(c *smtptest.MXConfig, ask func(key string) error)
	}{
		{"at RCPT", func(c *smtptest.MXConfig, ask func(string) error) { c.Rcpt = ask }},
		{"at the mail", func(c *smtptest.MXConfig, ask func(string) error) {
			c.Data = func(m smtptest.Message) error { return ask(m.To[0]) }
		}},
	}
	inSQLite(t, func(t *testing.T, w *world) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				var mu sync.Mutex
				first := map[string]time.Time{}
				var cfg smtptest.MXConfig
				tt.at(&cfg, func(key string) error {
					mu.Lock()
					defer mu.Unlock()
					if first[key].IsZero() {
						first[key] = w.clock.Now()
					}
					if w.clock.Now().Sub(first[key]) < wait {
						return smtptest.Refuse(451, [3]int{4, 7, 1}, "greylisted, come again in 5 minutes")
					}
					return nil
				})
				mx := smtptest.NewMX(t, cfg)
				q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()), func(c *queue.Config) { c.MaxPerDomain = 1 })
				m := w.send(t, "bob@out.example")

				round(t, q, 1)
				w.wantRecipient(t, m, store.RecipientQueued, "451 4.7.1 greylisted")
				w.clock.Add(70 * time.Second)
				round(t, q, 1)
				w.wantRecipient(t, m, store.RecipientQueued, "451 4.7.1 greylisted")
				other := w.send(t, "ann@out.example")
				round(t, q, 1) // the domain is not left alone for that
				w.wantRecipient(t, other, store.RecipientQueued, "451 4.7.1 greylisted")
				w.clock.Add(6 * time.Minute)
				round(t, q, 2)
				r := w.wantRecipient(t, m, store.RecipientDelivered, "250")
				w.wantRecipient(t, other, store.RecipientDelivered, "250")
				known := w.send(t, "bob@out.example")
				round(t, q, 1)
				w.wantRecipient(t, known, store.RecipientDelivered, "250")
				if r.Attempts != 3 || len(mx.Messages()) != 3 {
					t.Errorf("%d attempts, %d messages", r.Attempts, len(mx.Messages()))
				}
			})
		}
	})
}
