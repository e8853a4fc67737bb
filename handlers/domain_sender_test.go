package handlers_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestSendersThatAreNotVerified is the first part of row O12: nothing is sent
// from the domain of another account or from a similar one.
func TestSendersThatAreNotVerified(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, s *server, zone *dns) {
		other := as(s.newKey(t, func(k *store.Key) { k.AccountID = storetest.Account(t, s.store).Seq }))
		mine, gone, lost, theirs := s.newDomain(t, "ann.example"), s.newDomain(t, "gone.example"), s.newDomain(t, "lost.example"), s.newDomain(t, "bob.example", other)
		s.newDomain(t, "waits.example")
		s.newDomain(t, "bob.example")
		for _, d := range []domain{mine, gone, lost, theirs} {
			zone.publish(d, "OWNERSHIP", "DKIM")
		}
		for _, d := range []domain{mine, gone, lost} {
			s.verify(t, d.ID)
		}
		s.verify(t, theirs.ID, other)
		s.do(t, http.MethodDelete, "/v1/domains/"+gone.ID, "").want(t, http.StatusOK)
		s.fails(t, zone, lost)
		box := s.do(t, http.MethodPost, "/v1/inboxes", `{"domain":"ann.example"}`).want(t, http.StatusCreated).str(t, "id")

		const notYours, bad = "domain_not_verified from", "invalid_request from"
		for from, want := range map[string]string{
			"a@waits.example": notYours, "a@gone.example": notYours, "a@lost.example": notYours, "a@bob.example": notYours,
			"a@never.example": notYours, "a@sub.ann.example": notYours, "a@notann.example": notYours, "a@ann.example.evil.example": notYours,
			"a@аnn.example": notYours, "a@ann-example.example": notYours, "a@ann.examp1e": notYours,
			"a@ann.example <a@evil.example>": notYours, "\"a@ann.example\" <a@evil.example>": notYours, "\"a@ann.example\"@evil.example": notYours,
			"a@evil.example, a@ann.example": bad, "a@ann.example\r\nSender: a@evil.example": bad, "group: a@ann.example;": bad,
			"\"a\"@ann.example": bad, "a@evil.example@ann.example": bad, "": bad,
		} {
			b, err := json.Marshal(map[string]any{"from": from, "to": "x@out.example", "subject": "s", "text": "t"})
			must(t, err)
			batch, err := json.Marshal(map[string]any{"from": from, "recipients": []any{map[string]string{"to": "x@out.example"}}, "subject": "s", "text": "t"})
			must(t, err)
			status := map[string]int{notYours: http.StatusForbidden, bad: http.StatusBadRequest}[want]
			s.do(t, http.MethodPost, "/v1/emails", string(b), brokenIf(status)).wantError(t, status, want)
			s.do(t, http.MethodPost, "/v1/emails/batch", string(batch), brokenIf(status)).wantError(t, status, want)
		}
		for _, header := range []string{"From", "sender", "Return-Path", "From ", "DKIM-Signature"} {
			res := s.do(t, http.MethodPost, "/v1/inboxes/"+box+"/messages", `{"to":"x@out.example","subject":"s","text":"t","headers":{"`+header+`":"a@evil.example"}}`, brokenIf(400))
			if res.status != http.StatusBadRequest {
				t.Errorf("a header %q: %d %s", header, res.status, res.body)
			}
		}
		s.do(t, http.MethodGet, "/v1/emails", "").want(t, http.StatusOK).says(t, "data", "[]")
		s.do(t, http.MethodPost, "/v1/emails", `{"from":"Ann <a+tag@ANN.example>","to":"x@out.example","subject":"s","text":"t"}`).want(t, http.StatusCreated)
	})
}

// fails removes the token of a domain for three days, so that it fails.
func (s *server) fails(t *testing.T, zone *dns, d domain) {
	t.Helper()
	zone.withdraw(d, "OWNERSHIP")
	for _, wait := range []time.Duration{24 * time.Hour, 72 * time.Hour} {
		s.clock.Add(wait)
		if _, err := zone.asked.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.do(t, http.MethodGet, "/v1/domains/"+d.ID, "").want(t, http.StatusOK).says(t, "status", `"failed"`)
}

// TestMailOfALostDomainFails is the second part of row O12: queued and scheduled
// emails fail with an event and without a connection if their domain is
// deleted, fails, or moves to another account.
func TestMailOfALostDomainFails(t *testing.T) {
	t.Parallel()
	for name, goes := range map[string]func(t *testing.T, s *server, zone *dns, d domain){
		"it is deleted": func(t *testing.T, s *server, _ *dns, d domain) {
			t.Helper()
			s.do(t, http.MethodDelete, "/v1/domains/"+d.ID, "").want(t, http.StatusOK)
		},
		"it fails": func(t *testing.T, s *server, zone *dns, d domain) { t.Helper(); s.fails(t, zone, d) },
		"another account has it": func(t *testing.T, s *server, zone *dns, d domain) {
			t.Helper()
			other := as(s.newKey(t, func(k *store.Key) { k.AccountID = storetest.Account(t, s.store).Seq }))
			s.do(t, http.MethodDelete, "/v1/domains/"+d.ID, "").want(t, http.StatusOK)
			theirs := s.newDomain(t, d.Domain, other)
			zone.publish(theirs, "OWNERSHIP", "DKIM")
			if got := s.verify(t, theirs.ID, other); got.Status != "verified" {
				t.Fatalf("for the other account it is %s", got.Status)
			}
			s.do(t, http.MethodPost, "/v1/emails", `{"from":"a@ann.example","to":"x@out.example","subject":"s","text":"t"}`, other).want(t, http.StatusCreated)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachDomain(t, func(t *testing.T, s *server, zone *dns) { mailOfADomainThatGoes(t, s, zone, goes) })
		})
	}
}

func mailOfADomainThatGoes(t *testing.T, s *server, zone *dns, goes func(*testing.T, *server, *dns, domain)) {
	t.Helper()
	d := s.newDomain(t, "ann.example")
	zone.publish(d, "OWNERSHIP", "DKIM")
	s.verify(t, d.ID)
	box := s.do(t, http.MethodPost, "/v1/inboxes", `{"domain":"ann.example"}`).want(t, http.StatusCreated).str(t, "id")
	s.webhookForAll(t)
	email := func(more string) string {
		return s.do(t, http.MethodPost, "/v1/emails", `{"from":"a@ann.example","to":"bob@out.example","subject":"s","text":"t"`+more+`}`).want(t, http.StatusCreated).str(t, "id")
	}
	ids := []string{email(""), email(`,"scheduledAt":"` + s.clock.Now().Add(time.Minute).Format(time.RFC3339) + `"`)}
	message := s.do(t, http.MethodPost, "/v1/inboxes/"+box+"/messages", `{"to":"bob@out.example","subject":"s","text":"t"}`).want(t, http.StatusCreated).str(t, "id")

	goes(t, s, zone, d)
	s.clock.Add(time.Minute)
	s.release(t)
	mx := smtptest.NewMX(t, smtptest.MXConfig{})
	s.deliver(t, mx)

	for _, id := range ids {
		s.do(t, http.MethodGet, "/v1/emails/"+id, "").want(t, http.StatusOK).says(t, "status", `"failed"`)
	}
	s.do(t, http.MethodGet, "/v1/messages/"+message, "").want(t, http.StatusOK).says(t, "status", `"failed"`)
	res := s.do(t, http.MethodGet, "/v1/webhooks", "").want(t, http.StatusOK)
	w, err := s.store.Webhook(t.Context(), s.account, res.str(t, "data.0.id"))
	must(t, err)
	events := s.bodies(t, w)
	got := map[store.EventType]int{store.EventEmailFailed: len(events[store.EventEmailFailed]), store.EventMessageFailed: len(events[store.EventMessageFailed])}
	if diff := cmp.Diff(map[store.EventType]int{store.EventEmailFailed: 2, store.EventMessageFailed: 1}, got); diff != "" {
		t.Errorf("events:\n%s", diff)
	}
	// The other account's emails are not delayed and are signed with its keys.
	for _, mail := range mx.Messages() {
		if !slices.Contains(mail.To, "x@out.example") || !strings.Contains(string(mail.Data), "DKIM-Signature:") {
			t.Errorf("from %s to %v went out", mail.From, mail.To)
		}
		for _, r := range d.Records {
			if selector, _, ok := strings.Cut(r.Name, "._domainkey."); ok && strings.Contains(string(mail.Data), "s="+selector+";") {
				t.Errorf("the mail of the other account is signed by the key %s of the first", selector)
			}
		}
	}
}

// deliver runs a queue that delivers out.example to mx until it is empty.
func (s *server) deliver(t *testing.T, mx *smtptest.MX) {
	t.Helper()
	q := s.queue(t, mx, func(c *queue.Config) { c.Signer = queue.NewSigner(s.store, s.clock.Now) })
	for n, err := 1, error(nil); n > 0; {
		if n, err = q.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// queue returns a queue that delivers out.example to mx.
func (s *server) queue(t *testing.T, mx *smtptest.MX, edits ...func(*queue.Config)) *queue.Queue {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	receiver, err := inbound.NewReceiver(inbound.ReceiverConfig{Store: s.store, Domain: mailDomain, TempDir: t.TempDir(), Now: s.clock.Now})
	must(t, err)
	cfg := queue.Config{
		Store: s.store, Local: receiver, Domain: mailDomain, HELO: "mx.in.example", MXPort: mx.Port(),
		Resolver: outbound.NewResolver(smtptest.NewDNS(t, smtptest.Zones{}.Domain("out.example", mx.IP()))),
		Guard:    netguard.New(netguard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}),
		Now:      s.clock.Now, Log: log,
	}
	for _, edit := range edits {
		edit(&cfg)
	}
	q, err := queue.New(cfg)
	must(t, err)
	t.Cleanup(q.Close)
	return q
}
