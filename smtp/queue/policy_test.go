package queue_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
)

// strict is the domain out.example with an MTA-STS policy.
type strict struct {
	w     *world
	host  *smtptest.PolicyHost
	pool  *x509.CertPool
	zones smtptest.Zones
	q     *queue.Queue

	good *tls.Config // of mx.out.example
}

func policy(mode string, mx ...string) string {
	text := "version: STSv1\r\nmode: " + mode + "\r\nmax_age: 604800\r\n"
	for _, name := range mx {
		text += "mx: " + name + "\r\n"
	}
	return text
}

// newStrict makes the domain, whose only host is mx.out.example at 127.0.0.1.
func newStrict(t *testing.T, w *world, text string) *strict {
	t.Helper()
	s := &strict{w: w, zones: smtptest.Zones{}.Domain("out.example", "127.0.0.1")}
	s.good, s.pool = smtptest.NewTLS(t, "mx.out.example", "a.b.out.example", "mta-sts.out.example")
	s.host = smtptest.NewPolicyHost(t, s.good, text)
	s.zones["mta-sts.out.example."] = smtptest.A("127.0.0.1")
	s.announce("1")
	gone := store.NewTime(w.clock.Now()) // what a case before has left
	if err := w.store.SaveMailPolicy(t.Context(), store.MailPolicy{Domain: "out.example", Mode: "none", FetchedAt: gone, ExpiresAt: gone}); err != nil {
		t.Fatal(err)
	}
	return s
}

// announce publishes the id of the policy, or takes the record away.
func (s *strict) announce(id string) {
	delete(s.zones, "_mta-sts.out.example.")
	if id != "" {
		s.zones["_mta-sts.out.example."] = smtptest.Zone{TXT: []string{"v=STSv1; id=" + id + ";"}}
	}
}

// queue makes a queue, with a DNS of the zones as they are now.
func (s *strict) queue(t *testing.T, mxPort uint16) *queue.Queue {
	t.Helper()
	s.q = s.w.queue(t, mxPort, maps.Clone(s.zones), func(c *queue.Config) { c.RootCAs, c.PolicyPort = s.pool, s.host.Port() })
	return s.q
}

// What each policy does with each kind of server (O2).
func TestPolicyOfADomain(t *testing.T) {
	const (
		queued    = store.RecipientQueued
		delivered = store.RecipientDelivered
	)
	bad, _ := smtptest.NewTLS(t, "mx.out.example")
	tests := []struct {
		name     string
		policy   string
		cfg      func(t *testing.T, s *strict) *tls.Config // of the server
		status   store.RecipientStatus
		response string
		tls      bool
		conns    bool
		unmet    int64
	}{
		{"enforce, all well", policy("enforce", "mx.out.example"), withGood, delivered, "250", true, true, 0},
		{"enforce, a wildcard", policy("enforce", "*.out.example"), withGood, delivered, "250", true, true, 0},
		{"enforce, no TLS", policy("enforce", "mx.out.example"), withNone, queued, "451 4.4.1 mx.out.example: no TLS", false, true, 1},
		{"enforce, an unknown signer", policy("enforce", "mx.out.example"), cert(bad), queued, "451 4.4.1 mx.out.example: TLS failed", false, true, 1},
		{"enforce, a certificate of another name", policy("enforce", "mx.out.example"), named("mx.other.example"), queued, "451 4.4.1 mx.out.example: TLS failed", false, true, 1},
		{"enforce, a certificate that is over", policy("enforce", "mx.out.example"), expired, queued, "451 4.4.1 mx.out.example: TLS failed", false, true, 1},
		{"enforce, another server", policy("enforce", "mail.out.example"), withGood, queued, "451 4.7.1 None of the mail servers of out.example", false, false, 1},
		{"enforce, a wildcard for more than a label", policy("enforce", "*.example"), withGood, queued, "451 4.7.1", false, false, 1},

		{"testing, all well", policy("testing", "mx.out.example"), withGood, delivered, "250", true, true, 0},
		{"testing, no TLS", policy("testing", "mx.out.example"), withNone, delivered, "250", false, true, 1},
		{"testing, an unknown signer", policy("testing", "mx.out.example"), cert(bad), delivered, "250", true, true, 1},
		{"testing, a certificate of another name", policy("testing", "mx.out.example"), named("mx.other.example"), delivered, "250", true, true, 1},
		{"testing, another server", policy("testing", "mail.out.example"), withGood, delivered, "250", true, true, 1},

		{"none, an unknown signer", policy("none"), cert(bad), delivered, "250", true, true, 0},
		{"none, no TLS", policy("none"), withNone, delivered, "250", false, true, 0},
		{"a policy with a fault", policy("enforce"), withNone, delivered, "250", false, true, 0},
	}
	inSQLite(t, func(t *testing.T, w *world) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				s := newStrict(t, w, tt.policy)
				mx := smtptest.NewMX(t, smtptest.MXConfig{TLS: tt.cfg(t, s)})
				m := w.send(t, "bob@out.example")

				round(t, s.queue(t, mx.Port()), 1)

				w.wantRecipient(t, m, tt.status, tt.response)
				messages := mx.Messages()
				if len(messages) > 0 != (tt.status == delivered) || len(messages) > 0 && messages[0].TLS != tt.tls {
					t.Errorf("messages: %+v", messages)
				}
				want := queue.Tally{UnmetEnforced: tt.unmet}
				if strings.HasPrefix(tt.name, "testing") {
					want = queue.Tally{UnmetTesting: tt.unmet}
				}
				if got := s.q.Tally(); mx.Conns() > 0 != tt.conns || got != want {
					t.Errorf("%d connections, counted %+v", mx.Conns(), got)
				}
			})
		}
	})
}

func withGood(_ *testing.T, s *strict) *tls.Config { return s.good }
func withNone(*testing.T, *strict) *tls.Config     { return nil }

func cert(cfg *tls.Config) func(*testing.T, *strict) *tls.Config {
	return func(*testing.T, *strict) *tls.Config { return cfg }
}

// named is a certificate of a trusted signer for another name.
func named(name string) func(*testing.T, *strict) *tls.Config {
	return func(t *testing.T, s *strict) *tls.Config { return s.signed(t, time.Now().Add(time.Hour), name) }
}

func expired(t *testing.T, s *strict) *tls.Config {
	return s.signed(t, time.Now().Add(-time.Hour), "mx.out.example")
}

// signed makes a certificate that is trusted.
func (s *strict) signed(t *testing.T, until time.Time, name string) *tls.Config {
	t.Helper()
	cfg, _ := smtptest.NewTLSUntil(t, until, name)
	leaf, err := x509.ParseCertificate(cfg.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	s.pool.AddCert(leaf)
	return cfg
}

// The queue skips a host that the policy does not name, and a host whose TLS does
// not satisfy it (O2).
func TestPolicySkipsHostsThatDoNotMatch(t *testing.T) {
	inSQLite(t, func(t *testing.T, w *world) {
		s := newStrict(t, w, policy("enforce", "mx.out.example", "plain.out.example"))
		l := smtptest.Listen(t, "127.0.0.1", "127.0.0.2", "127.0.0.3")
		goodMX := smtptest.NewMX(t, smtptest.MXConfig{Listener: l[0], TLS: s.good})
		plain := smtptest.NewMX(t, smtptest.MXConfig{Listener: l[1]})
		foreign := smtptest.NewMX(t, smtptest.MXConfig{Listener: l[2]})
		s.zones["out.example."] = smtptest.MXRecords(net.MX{Host: "evil.example.", Pref: 1},
			net.MX{Host: "plain.out.example.", Pref: 2}, net.MX{Host: "mx.out.example.", Pref: 3})
		s.zones["plain.out.example."], s.zones["evil.example."] = smtptest.A("127.0.0.2"), smtptest.A("127.0.0.3")
		m := w.send(t, "bob@out.example")

		round(t, s.queue(t, goodMX.Port()), 1)

		w.wantRecipient(t, m, store.RecipientDelivered, "250")
		if len(goodMX.Messages()) != 1 || plain.Conns() != 1 || len(plain.Messages()) != 0 || foreign.Conns() != 0 || s.q.Tally().UnmetEnforced != 2 {
			t.Errorf("%d messages; %d and %d connections to the others", len(goodMX.Messages()), plain.Conns(), foreign.Conns())
		}
	})
}

// An announced policy that cannot be fetched does not apply (O2).
func TestPolicyThatCannotBeFetched(t *testing.T) {
	text := policy("enforce", "mail.out.example") // would stop the mail
	respond := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Location", "/")
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, body)
		}
	}
	tests := []struct {
		name   string
		change func(t *testing.T, s *strict)
		calls  int
	}{
		{"404", func(_ *testing.T, s *strict) { s.host.Set(respond(404, "text/plain", text)) }, 1},
		{"a redirect", func(_ *testing.T, s *strict) { s.host.Set(respond(302, "text/plain", text)) }, 1},
		{"another type", func(_ *testing.T, s *strict) { s.host.Set(respond(200, "text/html", text)) }, 1},
		{"too long", func(_ *testing.T, s *strict) {
			s.host.Set(respond(200, "text/plain", text+"x: "+strings.Repeat("y", 64<<10)))
		}, 1},
		{"a certificate of another name", func(t *testing.T, s *strict) {
			cfg, _ := smtptest.NewTLS(t, "out.example")
			s.host = smtptest.NewPolicyHost(t, cfg, text)
		}, 0},
		{"no policy host", func(_ *testing.T, s *strict) { delete(s.zones, "mta-sts.out.example.") }, 0},
		{"no record", func(_ *testing.T, s *strict) { s.announce("") }, 0},
		{"two records", func(_ *testing.T, s *strict) {
			s.zones["_mta-sts.out.example."] = smtptest.Zone{TXT: []string{"v=STSv1; id=1;", "v=STSv1; id=2;"}}
		}, 0},
		{"a private policy host", func(_ *testing.T, s *strict) {
			s.zones["mta-sts.out.example."] = smtptest.A("10.0.0.1")
		}, 0},
	}
	inSQLite(t, func(t *testing.T, w *world) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				s := newStrict(t, w, text)
				tt.change(t, s)
				mx := smtptest.NewMX(t, smtptest.MXConfig{})
				q := s.queue(t, mx.Port())
				for range 3 { // it is not asked for again by each mail
					m := w.send(t, "bob@out.example")
					w.clock.Add(90 * time.Second)
					round(t, q, 1)
					w.wantRecipient(t, m, store.RecipientDelivered, "250")
				}
				if s.host.Calls() != tt.calls {
					t.Errorf("the host was asked %d times, want %d", s.host.Calls(), tt.calls)
				}
			})
		}
	})
}

// A policy is kept in the database until it expires: a new process, or another
// node, keeps to it whatever has become of the record and the host, and takes over
// another one when the id changes (O2).
func TestPolicyIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := newStrict(t, w, policy("enforce", "mx.out.example"))
		mx := smtptest.NewMX(t, smtptest.MXConfig{}) // without TLS
		try := func(want store.RecipientStatus) {
			t.Helper()
			m := w.send(t, "bob@out.example")
			if _, err := s.queue(t, mx.Port()).RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.wantRecipient(t, m, want, "")
		}
		down := func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) }

		try(store.RecipientQueued) // fetched
		s.announce("")
		try(store.RecipientQueued) // the record is gone
		s.announce("2")
		s.host.Set(down)
		try(store.RecipientQueued) // another id, and no policy available
		s.announce("1")
		calls := s.host.Calls()
		try(store.RecipientQueued)
		if s.host.Calls() != calls {
			t.Error("a policy that is known was fetched again")
		}
		s.announce("3")
		s.host.SetPolicy(policy("testing", "mx.out.example"))
		try(store.RecipientDelivered) // another id, and another policy
		s.host.SetPolicy(policy("enforce", "mx.out.example"))
		try(store.RecipientDelivered) // the same id: it is not asked for
		w.clock.Add(25 * time.Hour)
		try(store.RecipientQueued) // after a day it is
		s.host.Set(down)
		w.clock.Add(6 * 24 * time.Hour)
		try(store.RecipientQueued) // and kept until it expires
		w.clock.Add(26 * time.Hour)
		try(store.RecipientDelivered)
	})
}
