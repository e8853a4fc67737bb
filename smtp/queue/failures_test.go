package queue_test

import (
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
)

// All faults at each step of a transaction with the only MX host of a domain (O3).
func TestFaultsOfAServer(t *testing.T) {
	const (
		queued    = store.RecipientQueued
		bounced   = store.RecipientBounced
		delivered = store.RecipientDelivered
	)
	const offersTLS = "250-mx.test\n250 STARTTLS"
	to := func(verb, text string) map[string]string { return map[string]string{verb: text} }
	tests := []struct {
		name     string
		banner   string
		replies  map[string]string
		status   store.RecipientStatus
		response string
	}{
		{"all well", "220 hi", nil, delivered, "250 ok"},
		{"a reply of several lines", "220 hi", to(".", "250-2.0.0 taken\n250 2.0.0 as 4711"), delivered, "250 2.0.0 taken as 4711"},
		{"a banner of several lines", "220-hi\n220-there\n220 you", nil, delivered, "250"},
		{"no EHLO, but HELO", "220 hi", to("EHLO", "502 5.5.1 what?"), delivered, "250"},

		{"banner 4yz", "421 4.3.2 come back", nil, queued, "421 4.3.2 come back"},
		{"banner 5yz", "554 5.7.1 not you", nil, bounced, "554 5.7.1 not you"},
		{"banner of another protocol", "SSH-2.0-OpenSSH_9.6", nil, queued, "451 4.4.1 mx.out.example: the reply is not SMTP"},
		{"banner hangs", smtptest.Hang, nil, queued, "451 4.4.1 mx.out.example: timed out"},
		{"banner closes", smtptest.Close, nil, queued, "451 4.4.1 mx.out.example: connection lost"},
		{"banner without end", "220-" + strings.Repeat("x", 10_000), nil, queued, "451 4.4.1 mx.out.example: the reply is not SMTP"},
		{"banner of too many lines", strings.Repeat("220-x\n", 200) + "220 x", nil, queued, "451 4.4.1 mx.out.example: the reply is not SMTP"},

		{"EHLO 4yz", "220 hi", to("EHLO", "421 4.3.2 busy"), queued, "421 4.3.2 busy"},
		{"EHLO and HELO 5yz", "220 hi", map[string]string{"EHLO": "550 5.7.1 go", "HELO": "550 5.7.1 away"}, bounced, "550 5.7.1 away"},
		{"EHLO hangs", "220 hi", to("EHLO", smtptest.Hang), queued, "451 4.4.1 mx.out.example: timed out"},
		{"EHLO closes", "220 hi", to("EHLO", smtptest.Close), queued, "451 4.4.1"},
		{"EHLO garbled", "220 hi", to("EHLO", "250-a\n251 b"), queued, "451 4.4.1 mx.out.example: the reply is not SMTP"},

		{"STARTTLS 4yz", "220 hi", map[string]string{"EHLO": offersTLS, "STARTTLS": "454 4.7.0 not now"}, delivered, "250"},
		{"STARTTLS 5yz", "220 hi", map[string]string{"EHLO": offersTLS, "STARTTLS": "502 5.5.1 what?"}, delivered, "250"},
		{"text after STARTTLS", "220 hi", map[string]string{"EHLO": offersTLS, "STARTTLS": "220 go ahead\n550 surprise"}, delivered, "250"},
		{"STARTTLS hangs", "220 hi", map[string]string{"EHLO": offersTLS, "STARTTLS": smtptest.Hang}, queued, "451 4.4.1 mx.out.example: timed out"},
		{"STARTTLS closes", "220 hi", map[string]string{"EHLO": offersTLS, "STARTTLS": smtptest.Close}, queued, "451 4.4.1 mx.out.example: connection lost"},
		{"STARTTLS needed and not working", "220 hi", map[string]string{
			"EHLO": offersTLS, "STARTTLS": "454 4.7.0 not now", "MAIL": "530 5.7.0 Must issue STARTTLS first",
		}, queued, "451 4.4.1 mx.out.example: no TLS"},

		{"MAIL 4yz", "220 hi", to("MAIL", "451 4.7.1 greylisted"), queued, "451 4.7.1 greylisted"},
		{"MAIL 5yz", "220 hi", to("MAIL", "550 5.7.1 sender refused"), bounced, "550 5.7.1 sender refused"},
		{"MAIL hangs", "220 hi", to("MAIL", smtptest.Hang), queued, "451 4.4.1 mx.out.example: timed out"},
		{"MAIL closes", "220 hi", to("MAIL", smtptest.Close), queued, "451 4.4.1"},
		{"MAIL 421", "220 hi", to("MAIL", "421 4.3.2 closing"), queued, "421 4.3.2 closing"},

		{"RCPT 4yz", "220 hi", to("RCPT", "450 4.2.1 later"), queued, "450 4.2.1 later"},
		{"RCPT 5yz", "220 hi", to("RCPT", "550-5.1.1 no such\n550-5.1.1  user\n550 5.1.1 here"), bounced, "550 5.1.1 no such user here"},
		{"RCPT hangs", "220 hi", to("RCPT", smtptest.Hang), queued, "451 4.4.1 mx.out.example: timed out"},
		{"RCPT closes", "220 hi", to("RCPT", smtptest.Close), queued, "451 4.4.1"},
		{"RCPT 421", "220 hi", to("RCPT", "421 4.3.2 closing"), queued, "421 4.3.2 closing"},
		{"RCPT 251", "220 hi", to("RCPT", "251 will forward"), delivered, "250"},
		{"RCPT 3yz", "220 hi", to("RCPT", "354 what"), queued, "354 what"},

		{"DATA 4yz", "220 hi", to("DATA", "451 4.3.0 later"), queued, "451 4.3.0 later"},
		{"DATA 5yz", "220 hi", to("DATA", "554 5.7.1 no valid recipients"), bounced, "554 5.7.1 no valid"},
		{"DATA 250", "220 hi", to("DATA", "250 ok"), queued, "451 4.4.1 mx.out.example: the reply is not SMTP"},
		{"DATA hangs", "220 hi", to("DATA", smtptest.Hang), queued, "451 4.4.1 mx.out.example: timed out"},
		{"DATA closes", "220 hi", to("DATA", smtptest.Close), queued, "451 4.4.1"},

		{"the message 4yz", "220 hi", to(".", "452 4.3.1 disk full"), queued, "452 4.3.1 disk full"},
		{"the message 5yz", "220 hi", to(".", "554 5.7.1 spam"), bounced, "554 5.7.1 spam"},
		{"the message hangs", "220 hi", to(".", smtptest.Hang), queued, "451 4.4.1 mx.out.example: timed out"},
		{"the message closes", "220 hi", to(".", smtptest.Close), queued, "451 4.4.1"},
		{"the message 354", "220 hi", to(".", "354 more"), queued, "354 more"},

		{"QUIT hangs", "220 hi", to("QUIT", smtptest.Hang), delivered, "250"},
		{"QUIT closes", "220 hi", to("QUIT", smtptest.Close), delivered, "250"},
		{"a reply that is not text", "220 hi", to("RCPT", "550 5.1.1 \xff\x1b[31mred\x00\ttab"), bounced, "550 5.1.1 \uFFFD [31mred tab"},
		{"many words", "220 hi", to("RCPT", "550 5.1.1 "+strings.Repeat("é", 1900)), bounced, "550 5.1.1 éé"},
	}
	inSQLite(t, func(t *testing.T, w *world) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				l := smtptest.Listen(t, "127.0.0.1")[0]
				smtptest.Script{Banner: tt.banner, Reply: smtptest.Replies(tt.replies)}.Serve(t, l)
				q := w.queue(t, port(l), smtptest.Zones{}.Domain("out.example", "127.0.0.1"), func(c *queue.Config) {
					if strings.Contains(tt.response, "timed out") {
						d := 100 * time.Millisecond
						c.Timeouts = outbound.Timeouts{Banner: d, Command: d, Data: d, Done: d}
					}
				})
				m := w.send(t, "bob@out.example")

				round(t, q, 1)

				r := w.wantRecipient(t, m, tt.status, tt.response)
				if len(*r.LastResponse) > 1000 {
					t.Errorf("the response has %d bytes", len(*r.LastResponse))
				}
			})
		}
	})
}

// With several recipients, the replies before a broken connection count for their
// recipients (O3).
func TestRepliesBeforeABreakCount(t *testing.T) {
	tests := []struct {
		name  string
		rcpts []string // replies in turn
		end   string   // of the mail
		want  [3]store.RecipientStatus
	}{
		{
			"broken at the third",
			[]string{"250 ok", "550 5.1.1 no", smtptest.Close},
			"250 ok",
			[3]store.RecipientStatus{store.RecipientQueued, store.RecipientBounced, store.RecipientQueued},
		},
		{
			"421 at the second",
			[]string{"550 5.1.1 no", "421 4.3.2 closing", "250 ok"},
			"250 ok",
			[3]store.RecipientStatus{store.RecipientBounced, store.RecipientQueued, store.RecipientQueued},
		},
		{
			"hangs at the second",
			[]string{"550 5.1.1 no", smtptest.Hang, "250 ok"},
			"250 ok",
			[3]store.RecipientStatus{store.RecipientBounced, store.RecipientQueued, store.RecipientQueued},
		},
		{
			"none taken",
			[]string{"550 5.1.1 no", "450 4.2.0 later", "553 5.1.3 no"},
			"250 ok",
			[3]store.RecipientStatus{store.RecipientBounced, store.RecipientQueued, store.RecipientBounced},
		},
		{
			"deferred after the message",
			[]string{"250 ok", "550 5.1.1 no", "250 ok"},
			"451 4.3.0 later",
			[3]store.RecipientStatus{store.RecipientQueued, store.RecipientBounced, store.RecipientQueued},
		},
		{
			"no reply to the message",
			[]string{"250 ok", "550 5.1.1 no", "450 4.2.0 later"},
			smtptest.Hang,
			[3]store.RecipientStatus{store.RecipientQueued, store.RecipientBounced, store.RecipientQueued},
		},
		{
			"broken after the mail",
			[]string{"250 ok", "550 5.1.1 no", "450 4.2.0 later"},
			smtptest.Close,
			[3]store.RecipientStatus{store.RecipientQueued, store.RecipientBounced, store.RecipientQueued},
		},
		{
			"refused after the mail",
			[]string{"250 ok", "550 5.1.1 no", "450 4.2.0 later"},
			"554 5.6.0 no",
			[3]store.RecipientStatus{store.RecipientBounced, store.RecipientBounced, store.RecipientQueued},
		},
	}
	inSQLite(t, func(t *testing.T, w *world) {
		for _, tt := range tests {
			for _, ehlo := range []string{"250 plain", "250-mx.test\n250 PIPELINING"} {
				t.Run(tt.name+", "+ehlo[4:], func(t *testing.T) {
					l := smtptest.Listen(t, "127.0.0.1")[0]
					var n atomic.Int64
					replies := smtptest.Replies(map[string]string{"EHLO": ehlo, ".": tt.end})
					smtptest.Script{Banner: "220 hi", Reply: func(line string) string {
						if strings.HasPrefix(line, "RCPT") {
							return tt.rcpts[n.Add(1)-1]
						}
						return replies(line)
					}}.Serve(t, l)
					q := w.queue(t, port(l), smtptest.Zones{}.Domain("out.example", "127.0.0.1"), func(c *queue.Config) {
						if d := 200 * time.Millisecond; tt.end == smtptest.Hang || slices.Contains(tt.rcpts, smtptest.Hang) {
							c.Timeouts = outbound.Timeouts{Command: d, Done: d}
						}
					})
					m := w.send(t, addresses(3, "out.example")...)

					round(t, q, 3)

					for i, r := range w.message(t, m).Recipients {
						wantState(t, r, tt.want[i], "")
					}
				})
			}
		}
	})
}

// A host that fails before it says anything of a recipient is left for the
// next one, on a new connection or on one from before.
func TestNextHostAfterMAILIsPutOff(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1", "127.0.0.2")
		var n atomic.Int64
		first := smtptest.NewMX(t, smtptest.MXConfig{Listener: l[0], Mail: func(string) error {
			if n.Add(1) == 1 {
				return nil
			}
			return smtptest.Refuse(451, [3]int{4, 3, 0}, "not now")
		}})
		second := smtptest.NewMX(t, smtptest.MXConfig{Listener: l[1]})
		q := w.queue(t, first.Port(), smtptest.Zones{
			"out.example.":   smtptest.MXRecords(net.MX{Host: "a.out.example.", Pref: 1}, net.MX{Host: "b.out.example.", Pref: 2}),
			"a.out.example.": smtptest.A("127.0.0.1"), "b.out.example.": smtptest.A("127.0.0.2"),
		})
		for range 2 {
			m := w.send(t, "bob@out.example")
			round(t, q, 1)
			w.wantRecipient(t, m, store.RecipientDelivered, "250")
		}
		if len(first.Messages()) != 1 || len(second.Messages()) != 1 {
			t.Errorf("%d and %d messages, want 1 and 1", len(first.Messages()), len(second.Messages()))
		}
	})
}

// A transaction has no more recipients than servers have to take.
func TestManyRecipientsMakeSeveralTransactions(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{})
		q := w.queue(t, mx.Port(), smtptest.Zones{}.Domain("out.example", mx.IP()), func(c *queue.Config) { c.MaxConns = 100 })
		m := w.send(t, addresses(150, "out.example")...)

		round(t, q, 150)

		total := 0
		for _, mail := range mx.Messages() {
			total += len(mail.To)
			if len(mail.To) > 100 {
				t.Errorf("a transaction with %d recipients", len(mail.To))
			}
		}
		if total != 150 || len(mx.Messages()) != 2 {
			t.Errorf("%d recipients in %d transactions", total, len(mx.Messages()))
		}
		for _, r := range w.message(t, m).Recipients {
			wantState(t, r, store.RecipientDelivered, "250")
		}
	})
}
