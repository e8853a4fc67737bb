package queue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func relay(t testing.TB, format string, args ...any) *outbound.Relay {
	t.Helper()
	r, err := outbound.ParseRelay(fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The relay gets one transaction for all recipients, and what it took is sent,
// not delivered. No MX is looked up, and the guard is for strangers' hosts.
func TestRelayGetsAllMail(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		mx := smtptest.NewMX(t, smtptest.MXConfig{Users: map[string]string{"me": "p@ss word"}})
		q := w.queue(t, 25, nil, func(c *queue.Config) {
			c.Relay, c.Resolver, c.Guard = relay(t, "smtp://me:p%%40ss%%20word@%s", mx.Addr()), noDNS{t}, netguard.New(netguard.Config{})
		})
		m := w.send(t, "ann@a.example", "bob@b.example", "eve@c.example")

		round(t, q, 3)

		messages := mx.Messages()
		if len(messages) != 1 || !cmp.Equal(messages[0].To, []string{"ann@a.example", "bob@b.example", "eve@c.example"}) || messages[0].User != "me" {
			t.Errorf("transactions: %+v", messages)
		}
		got := w.message(t, m)
		for _, r := range got.Recipients {
			wantState(t, r, store.RecipientSent, "250")
		}
		if got.Status != store.MessageSent || got.SentAt == nil || got.DeliveredAt != nil {
			t.Errorf("the message is %s, sent at %v, delivered at %v", got.Status, got.SentAt, got.DeliveredAt)
		}
	})
}

// Amazon SES replaces the Message-ID. A reply names the one of SES, and joins the
// thread nevertheless.
func TestReplyToWhatARelayRenamedJoinsTheThread(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, tt := range []struct {
			said, reply string
			joins       bool
		}{
			{"250 Ok 0100abc-1", "<0100abc-1@eu-central-1.amazonses.com>", true},
			{"250 Ok 010f0190-ab12-000000", "<010f0190-ab12-000000@email.amazonses.com>", true},
			{"250 2.0.0 Ok 0100abc-2", "<0100abc-2@us-west-2.amazonses.com>", true},
			{"250 Ok 0100abc-3", "<0100abc-4@us-west-2.amazonses.com>", false},
			{"250 Ok 0100abc-5", "<0100abc-5@amazonses.com.out.example>", false},
			{"250 2.0.0 Ok: queued as 0100abc-6", "<0100abc-6@eu-central-1.amazonses.com>", false},
		} {
			l := smtptest.Listen(t, "127.0.0.1")[0]
			smtptest.Script{Banner: "220 hi", Reply: smtptest.Replies(map[string]string{".": tt.said})}.Serve(t, l)
			q := w.queue(t, 25, nil, func(c *queue.Config) { c.Relay = relay(t, "smtp://%s", l.Addr()) })
			m := w.send(t, "ann@out.example", "bob@out.example")

			round(t, q, 2)

			for _, r := range w.message(t, m).Recipients {
				wantState(t, r, store.RecipientSent, tt.said)
			}
			for range 2 { // the first reply changes nothing for the second
				reply := storetest.Received(t, w.store, w.inbox, func(n *store.NewMessage) { n.Refs.V.InReplyTo = []string{tt.reply} })
				if joins := reply.ThreadID == w.message(t, m).ThreadID; joins != tt.joins {
					t.Errorf("%s: a reply to %s joins: %v", tt.said, tt.reply, joins)
				}
			}
		}
	})
}

func TestHowTheRelayIsReached(t *testing.T) {
	cfg, pool := smtptest.NewTLS(t, "127.0.0.1")
	foreign, _ := smtptest.NewTLS(t, "relay.example")
	users := map[string]string{"me": "pw"}
	tests := []struct {
		name     string
		mx       smtptest.MXConfig
		url      string // %s is the address
		status   store.RecipientStatus
		response string
		tls      bool
	}{
		{"STARTTLS, the certificate is good", smtptest.MXConfig{TLS: cfg, Users: users}, "smtp://me:pw@%s?tls=verify", store.RecipientSent, "250", true},
		{"TLS from the first byte", smtptest.MXConfig{TLS: cfg, Implicit: true, Users: users}, "smtps://me:pw@%s", store.RecipientSent, "250", true},
		{"no TLS where it must be", smtptest.MXConfig{Users: users}, "smtp://me:pw@%s?tls=verify", store.RecipientQueued, "451 4.4.1 The relay: no TLS", false},
		{"a foreign certificate", smtptest.MXConfig{TLS: foreign, Users: users}, "smtp://me:pw@%s?tls=verify", store.RecipientQueued, "451 4.4.1 The relay: TLS failed", false},
		{"a foreign certificate that may be", smtptest.MXConfig{TLS: foreign, Users: users}, "smtp://me:pw@%s?tls=insecure", store.RecipientSent, "250", true},
		{"a foreign certificate at smtps", smtptest.MXConfig{TLS: foreign, Implicit: true}, "smtps://%s", store.RecipientQueued, "451 4.4.1 The relay: TLS failed", false},
		{"TLS switched off", smtptest.MXConfig{TLS: cfg, Users: users}, "smtp://me:pw@%s?tls=off", store.RecipientSent, "250", false},
		{"no user, TLS because it is there", smtptest.MXConfig{TLS: foreign}, "smtp://%s", store.RecipientSent, "250", true},
		{"no user, no TLS", smtptest.MXConfig{}, "smtp://%s", store.RecipientSent, "250", false},
		{"the wrong password", smtptest.MXConfig{Users: users}, "smtp://me:wrong@%s", store.RecipientQueued, "451 4.7.0 The relay does not accept our credentials", false},
		{"a password for a server without AUTH", smtptest.MXConfig{}, "smtp://me:pw@%s", store.RecipientQueued, "451 4.7.0 The relay does not accept our credentials", false},
		{"no password where one is asked for", smtptest.MXConfig{Users: users}, "smtp://%s", store.RecipientBounced, "502 5.7.0", false},
	}
	inSQLite(t, func(t *testing.T, w *world) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				mx := smtptest.NewMX(t, tt.mx)
				q := w.queue(t, 25, nil, func(c *queue.Config) {
					c.Relay, c.Resolver, c.RootCAs = relay(t, tt.url, mx.Addr()), noDNS{t}, pool
				})
				m := w.send(t, "bob@out.example")

				round(t, q, 1)

				w.wantRecipient(t, m, tt.status, tt.response)
				for _, mail := range mx.Messages() {
					if mail.TLS != tt.tls {
						t.Errorf("TLS %v, want %v", mail.TLS, tt.tls)
					}
				}
			})
		}
	})
}

// A relay that requires credentials that are not configured is the operator's
// fault, not the message's.
func TestRelayWithAPassword(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1")[0]
		smtptest.Script{Banner: "220 hi", Reply: smtptest.Replies(map[string]string{"MAIL": "530 5.7.0 log in first"})}.Serve(t, l)
		q := w.queue(t, 25, nil, func(c *queue.Config) { c.Relay = relay(t, "smtp://%s", l.Addr()) })
		m := w.send(t, "bob@out.example")

		round(t, q, 1)

		w.wantRecipient(t, m, store.RecipientQueued, "451 4.7.0 The relay does not accept our credentials")
	})
}

// A relay that knows LOGIN alone is logged in to as well.
func TestLoginInSteps(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		l := smtptest.Listen(t, "127.0.0.1")[0]
		said := make(chan string, 20)
		replies := smtptest.Replies(map[string]string{
			"EHLO": "250-relay.test\n250 AUTH LOGIN XOAUTH2", "AUTH": "334 VXNlcm5hbWU6", "BWU=": "334 UGFzc3dvcmQ6", "CHC=": "235 2.7.0 in",
		})
		smtptest.Script{Banner: "220 hi", Reply: func(line string) string {
			said <- line
			return replies(line)
		}}.Serve(t, l)
		q := w.queue(t, 25, nil, func(c *queue.Config) { c.Relay, c.Resolver = relay(t, "smtp://me:pw@%s", l.Addr()), noDNS{t} })
		m := w.send(t, "bob@out.example")

		round(t, q, 1)

		w.wantRecipient(t, m, store.RecipientSent, "250")
		var got []string
		for range 4 {
			got = append(got, <-said)
		}
		if diff := cmp.Diff([]string{"EHLO mail.in.example", "AUTH LOGIN", "bWU=", "cHc="}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestParseRelay(t *testing.T) {
	t.Parallel()
	tests := []struct{ in, want, err string }{
		{in: "smtp://mail.example", want: "smtp://mail.example:587"},
		{in: "smtps://me:secret@mail.example", want: "smtps://me:xxxxx@mail.example:465"},              //nolint:gosec // not a real password
		{in: "smtp://me:secret@mail.example:2525/?tls=off", want: "smtp://me:xxxxx@mail.example:2525"}, //nolint:gosec // not a real password
		{in: "smtp://[::1]:25", want: "smtp://[::1]:25"},
		{in: "mail.example:25", err: "smtp:// or smtps://"},
		{in: "http://mail.example", err: "smtp:// or smtps://"},
		{in: "smtp://", err: "not an address"},
		{in: "smtp://mail.example/path", err: "not an address"},
		{in: "smtp://me:se%cret@mail.example", err: "not an address"}, //nolint:gosec // not a real password
		{in: "smtp://mail.example:0", err: `"0" is not a port`},
		{in: "smtp://mail.example:99999", err: `"99999" is not a port`},
		{in: "smtp://mail.example?tls=yes", err: "tls is verify, insecure, maybe or off"},
		{in: "smtps://mail.example?tls=off", err: "smtps cannot have tls=off"},
		{in: "smtp://mail.example?ssl=1", err: `unknown parameter "ssl"`},
	}
	for _, tt := range tests {
		r, err := outbound.ParseRelay(tt.in)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "se%cret") {
				t.Errorf("%s: error %v, want %q", tt.in, err, tt.err)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.in, err)
		case r.String() != tt.want:
			t.Errorf("%s reads as %s, want %s", tt.in, r, tt.want)
		}
	}
}
