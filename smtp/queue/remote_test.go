package queue_test

import (
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func TestQueueDeliversToTheMX(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		m := w.send(t, "bob@out.example")

		round(t, q, 1)

		mail := mx.Wait(t, 1)[0]
		if mail.From != w.inbox.Address || !cmp.Equal(mail.To, []string{"bob@out.example"}) || mail.HELO != "mail.in.example" {
			t.Errorf("envelope from %q to %q, HELO %q", mail.From, mail.To, mail.HELO)
		}
		if diff := cmp.Diff(string(m.Content.Raw), string(mail.Data)); diff != "" {
			t.Error(diff)
		}
		r := w.wantRecipient(t, m, store.RecipientDelivered, "250 2.0.0")
		if r.SentAt == nil || r.DeliveredAt == nil || r.Attempts != 1 {
			t.Errorf("sent at %v, delivered at %v, %d attempts", r.SentAt, r.DeliveredAt, r.Attempts)
		}
		if got := w.message(t, m); got.Status != store.MessageDelivered {
			t.Errorf("the message is %s", got.Status)
		}
		round(t, q, 0)
	})
}

func TestEqualPreferencesShareTheMail(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1", "127.0.0.2")
		a, b := smtptest.NewMX(t, smtptest.MXConfig{Listener: l[0]}), smtptest.NewMX(t, smtptest.MXConfig{Listener: l[1]})
		q := w.queue(t, a.Port(), smtptest.Zones{
			"out.example.":   smtptest.MXRecords(net.MX{Host: "a.out.example.", Pref: 10}, net.MX{Host: "b.out.example.", Pref: 10}),
			"a.out.example.": smtptest.A("127.0.0.1"), "b.out.example.": smtptest.A("127.0.0.2"),
		})
		for range 40 {
			w.send(t, "bob@out.example")
		}

		round(t, q, 40)

		// By chance all go one way in one of 2^39 runs.
		if len(a.Messages()) == 0 || len(b.Messages()) == 0 || len(a.Messages())+len(b.Messages()) != 40 {
			t.Errorf("the hosts got %d and %d messages", len(a.Messages()), len(b.Messages()))
		}
	})
}

// A stranger whose server is at a private address must not stop an account.
func TestOurOwnRefusalsDoNotPauseAnAccount(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		w := newWorld(t, cfg)
		mx := smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(to string) error {
			if strings.HasPrefix(to, "gone") {
				return smtptest.Refuse(550, [3]int{5, 1, 1}, "no such user")
			}
			return nil
		}})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()).Domain("private.example", "10.1.2.3"))
		send := func(n int, name, domain string) {
			t.Helper()
			for n > 0 {
				var to []string
				for range min(n, 50) {
					to = append(to, fmt.Sprintf("%s%d@%s", name, n, domain))
					n--
				}
				storetest.Sent(t, w.store, w.inbox, to)
				for range to {
					if claimed, err := q.RunOnce(t.Context()); err != nil {
						t.Fatal(err)
					} else if claimed == 0 {
						break
					}
				}
			}
		}
		paused := func() bool {
			u, err := w.store.Usage(t.Context(), w.inbox.AccountID)
			if err != nil {
				t.Fatal(err)
			}
			return u.Account.PausedAt != nil
		}
		send(200, "ann", "out.example")
		if send(25, "eve", "private.example"); paused() {
			t.Error("paused by recipients to whose servers this installation does not connect")
		}
		if send(11, "gone", "out.example"); !paused() {
			t.Error("not paused after 11 of 211 bounced")
		}
	}, storetest.WithConfig(func(c *store.Config) { c.AutoPause = true }))
}

// Each recipient gets the reply that was meant for it. The accepted recipients
// share one transaction.
func TestEachRecipientHasItsOwnReply(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(rcpt string) error {
			switch {
			case strings.HasPrefix(rcpt, "gone"):
				return smtptest.Refuse(550, [3]int{5, 1, 1}, "no such user")
			case strings.HasPrefix(rcpt, "full") && rcpt != "full2@out.example":
				return smtptest.Refuse(452, [3]int{4, 2, 2}, "mailbox full")
			}
			return nil
		}})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		m := w.send(t, "ann@out.example", "gone@out.example", "full@out.example", "bob@out.example")

		round(t, q, 4)

		messages := mx.Wait(t, 1)
		if len(messages) != 1 || !cmp.Equal(messages[0].To, []string{"ann@out.example", "bob@out.example"}) {
			t.Errorf("%d transactions, to %q", len(messages), messages[0].To)
		}
		got := w.message(t, m)
		wantState(t, got.Recipients[0], store.RecipientDelivered, "250 2.0.0")
		wantState(t, got.Recipients[1], store.RecipientBounced, "550 5.1.1 no such user")
		wantState(t, got.Recipients[2], store.RecipientQueued, "452 4.2.2 mailbox full")
		wantState(t, got.Recipients[3], store.RecipientDelivered, "250 2.0.0")
		if got.Status != store.MessageDelivered {
			t.Errorf("the message is %s", got.Status)
		}

		w.clock.Add(2 * time.Minute)
		round(t, q, 1) // the full one alone
	})
}

// A connection is closed after 100 messages, and not reused after an error.
func TestConnectionIsNotUsedForever(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		var n atomic.Int64
		mx := smtptest.NewMX(t, smtptest.MXConfig{Data: func(smtptest.Message) error {
			if n.Add(1) == 150 {
				return smtptest.Refuse(451, [3]int{4, 3, 0}, "later")
			}
			return nil
		}})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()), func(c *queue.Config) {
			c.MaxPerDomain, c.MaxConns = 1, 100
		})
		for range 160 {
			w.send(t, "bob@out.example")
		}

		round(t, q, 160)

		if len(mx.Messages()) != 159 || mx.Conns() != 3 {
			t.Errorf("%d messages over %d connections, want 159 over 3", len(mx.Messages()), mx.Conns())
		}
	})
}

// A server's limit on the messages per connection is respected (RFC 9422).
func TestServerLimitsTheMessagesOfAConnection(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		for limits, conns := range map[string]int64{"LIMITS MAILMAX=3 RCPTMAX=100": 4, "LIMITS RCPTMAX=100 mailmax=0": 1} {
			l := smtptest.Listen(t, "127.0.0.1")[0]
			calls := &atomic.Int64{}
			smtptest.Script{Banner: "220 hi", Reply: smtptest.Replies(map[string]string{"EHLO": "250-mx.test\n250 " + limits})}.
				Serve(t, &countingListener{l, calls})
			q := w.queue(t, port(l), smtptest.Zones{}.Domain("out.example", "127.0.0.1"), func(c *queue.Config) { c.MaxPerDomain = 1 })
			for range 10 {
				w.send(t, "bob@out.example")
			}

			round(t, q, 10)

			if calls.Load() != conns {
				t.Errorf("%s: %d connections for 10 messages, want %d", limits, calls.Load(), conns)
			}
		}
	})
}

func TestConnectionClosedBetweenMessagesIsReplaced(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1")[0]
		smtptest.Script{Banner: "220 hello", Reply: smtptest.Replies(map[string]string{"RSET": smtptest.Close})}.Serve(t, l)
		q := w.queue(t, port(l), smtptest.Zones{}.Domain("out.example", "127.0.0.1"))
		for range 3 {
			m := w.send(t, "bob@out.example")
			round(t, q, 1)
			w.wantRecipient(t, m, store.RecipientDelivered, "250")
		}
	})
}

func TestAddressesOutsideASCII(t *testing.T) {
	tests := []struct {
		name, to string
		utf8     bool
		wire     string
		status   store.RecipientStatus
		response string
	}{
		{"a domain is written in ASCII", "bob@bücher.example", false, "bob@xn--bcher-kva.example", store.RecipientDelivered, "250"},
		{"a local part needs SMTPUTF8", "дима@bücher.example", true, "дима@xn--bcher-kva.example", store.RecipientDelivered, "250"},
		{"and bounces without", "дима@bücher.example", false, "", store.RecipientBounced, "553 5.6.7"},
	}
	inSQLite(t, func(t *testing.T, w *world) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				mx := smtptest.NewMX(t, smtptest.MXConfig{UTF8: tt.utf8})
				q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("xn--bcher-kva.example", mx.IP()))
				m := w.send(t, tt.to)

				round(t, q, 1)

				w.wantRecipient(t, m, tt.status, tt.response)
				var wire string
				for _, mail := range mx.Messages() {
					wire = mail.To[0]
				}
				if wire != tt.wire {
					t.Errorf("RCPT TO %q, want %q", wire, tt.wire)
				}
			})
		}
	})
}

// A header that names a local part outside ASCII needs SMTPUTF8 for every
// recipient (O9).
func TestHeadersOutsideASCII(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		for name, edit := range map[string]func(*mail.Addresses){
			"From":     func(as *mail.Addresses) { as.From = &mail.Address{Email: "дима@in.example"} },
			"Cc":       func(as *mail.Addresses) { as.Cc = []mail.Address{{Email: "дима@out.example"}} },
			"Reply-To": func(as *mail.Addresses) { as.ReplyTo = []mail.Address{{Email: "дима@in.example"}} },
		} {
			for utf8, want := range map[bool]store.RecipientStatus{true: store.RecipientDelivered, false: store.RecipientBounced} {
				mx := smtptest.NewMX(t, smtptest.MXConfig{UTF8: utf8})
				q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
				to := fmt.Sprintf("%s-%t@out.example", name, utf8)
				m := storetest.Sent(t, w.store, w.inbox, []string{to}, func(m *store.NewMessage) { edit(&m.Addresses.V) })

				round(t, q, 1)

				w.wantRecipient(t, m, want, map[bool]string{true: "250", false: "553 5.6.7"}[utf8])
				for _, mail := range mx.Messages() {
					if !mail.UTF8 {
						t.Errorf("%s: MAIL did not say SMTPUTF8", name)
					}
				}
			}
		}
	})
}

func TestLargeMailComesFromTheBlobFolder(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()))
		raw := "From: a@in.example\r\nSubject: big\r\n\r\n" + strings.Repeat(".a line that begins with a dot\r\n..\r\n", 100_000)
		key, _, err := w.store.PutBlob(t.Context(), strings.NewReader(raw), int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		m := storetest.Sent(t, w.store, w.inbox, []string{"bob@out.example"}, func(m *store.NewMessage) {
			m.Content.BlobKey, m.Size = &key, int64(len(raw))
		})

		round(t, q, 1)

		w.wantRecipient(t, m, store.RecipientDelivered, "250")
		if got := string(mx.Wait(t, 1)[0].Data); got != raw {
			t.Errorf("%d bytes arrived, not the %d that were sent", len(got), len(raw))
		}
	})
}
