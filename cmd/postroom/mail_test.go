package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/smtp"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mailauth"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/smtptest"
)

// out sends an email to bob@outside.example and returns its id.
func out(t *testing.T, s *served) string {
	t.Helper()
	_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"ann"}`)
	status, m := s.call(t, s.key, http.MethodPost, fmt.Sprintf("/v1/inboxes/%s/messages", inbox["id"]),
		`{"to":"bob@outside.example","subject":"Hello","text":"Are you there?"}`)
	if status != http.StatusCreated {
		t.Fatalf("send: %d %v", status, m)
	}
	return fmt.Sprint(m["id"])
}

// until asks for the message until it is as the test wants it, and returns it
// and its one recipient.
func until(t *testing.T, s *served, id string, good func(m, rcpt map[string]any) bool) (m, rcpt map[string]any) {
	t.Helper()
	waittest.Until(t, "the message is as wanted", func() bool {
		var status int
		status, m = s.call(t, s.key, http.MethodGet, "/v1/messages/"+id, "")
		if status == http.StatusTooManyRequests {
			return false
		}
		rcpts, _ := m["recipients"].([]any)
		if len(rcpts) != 1 {
			t.Fatalf("recipients of %v", m)
		}
		rcpt, _ = rcpts[0].(map[string]any)
		return good(m, rcpt)
	})
	return m, rcpt
}

func becomes(t *testing.T, s *served, id, status string) {
	t.Helper()
	until(t, s, id, func(m, _ map[string]any) bool { return m["status"] == status })
}

func TestMailIsSentToTheMXOfItsDomain(t *testing.T) {
	t.Parallel()
	mx := smtptest.NewMX(t, smtptest.MXConfig{})
	dns := smtptest.NewDNS(t, smtptest.Zones{}.Domain("outside.example", mx.IP()))
	data := t.TempDir()
	env := []string{
		"POSTROOM_RESOLVER=" + dns, fmt.Sprintf("POSTROOM_MX_PORT=%d", mx.Port()), "POSTROOM_MX_ALLOW=127.0.0.0/8",
		"POSTROOM_MAIL_DOMAIN=agents.example.com", "POSTROOM_HOSTNAME=out.example.com",
	}
	s := serve(t, data, env...)
	id := out(t, s)
	sent := mx.Wait(t, 1)[0]
	becomes(t, s, id, "delivered")
	if sent.HELO != "out.example.com" || !isReturnPath(sent.From, "agents.example.com") {
		t.Errorf("HELO %q, MAIL FROM %q", sent.HELO, sent.From)
	}
	wantAuthenticated(t, sent, waitForSigningKeys(t, data, env))
}

// wantAuthenticated checks the mail as a mailbox provider does, with the records that
// `postroom domain show` told the operator to publish: SPF, both DKIM signatures and DMARC
// pass, and all are of the domain in From (O10).
func wantAuthenticated(t *testing.T, m smtptest.Message, records string) {
	t.Helper()
	zones := smtptest.Zones{}
	for name, value := range txtRecords(t, records) {
		zones[name+"."] = smtptest.Zone{TXT: []string{value}}
	}
	const domain = "agents.example.com"
	own := zones[domain+"."]
	own.MX = []net.MX{{Host: m.HELO + ".", Pref: 10}}
	zones[domain+"."], zones[m.HELO+"."] = own, smtptest.A("127.0.0.1")
	check := mailauth.NewChecker(outbound.NewResolver(smtptest.NewDNS(t, zones)), 0, nil).Start(t.Context(), mailauth.Envelope{
		Client: netip.MustParseAddr("127.0.0.1"), HELO: m.HELO, MailFrom: m.From,
	})
	if err := check.Read(bytes.NewReader(m.Data), mail.DefaultLimits()); err != nil {
		t.Fatal(err)
	}
	v := check.Wait()
	if v.SPF.Result != mailauth.Pass || v.SPF.Domain != domain || v.DMARC.Result != mailauth.Pass || v.DMARC.Record != domain || len(v.DKIM) != 2 {
		t.Errorf("SPF %+v, DMARC %+v, %d signatures", v.SPF, v.DMARC, len(v.DKIM))
	}
	for _, sig := range v.DKIM {
		if sig.Result != mailauth.Pass || !sig.SignsFrom || sig.Domain != domain {
			t.Errorf("signature %+v", sig)
		}
	}
}

func TestMailDoesNotReachPrivateAddresses(t *testing.T) {
	t.Parallel()
	mx := smtptest.NewMX(t, smtptest.MXConfig{})
	dns := smtptest.NewDNS(t, smtptest.Zones{}.Domain("outside.example", mx.IP()))
	s := serve(t, t.TempDir(), "POSTROOM_RESOLVER="+dns, fmt.Sprintf("POSTROOM_MX_PORT=%d", mx.Port()))
	id := out(t, s)
	m, rcpt := until(t, s, id, func(_, rcpt map[string]any) bool { return rcpt["attempts"] != 0.0 })
	if n := mx.Conns(); n != 0 {
		t.Errorf("%d connections to a private address", n)
	}
	if m["status"] == "delivered" || m["status"] == "sent" {
		t.Errorf("the message is %v, its recipient %v", m["status"], rcpt)
	}
}

func TestMailIsSentToTheRelay(t *testing.T) {
	t.Parallel()
	relay := smtptest.NewMX(t, smtptest.MXConfig{Users: map[string]string{"postroom": "hunter2"}})
	s := serve(t, t.TempDir(), "POSTROOM_RELAY=smtp://postroom:hunter2@"+relay.Addr()+"?tls=maybe")
	id := out(t, s)
	if mail := relay.Wait(t, 1)[0]; mail.User != "postroom" || len(mail.To) != 1 || mail.To[0] != "bob@outside.example" {
		t.Errorf("the relay accepted it from %q to %v", mail.User, mail.To)
	}
	becomes(t, s, id, "sent")
	if strings.Contains(s.log.String(), "hunter2") {
		t.Errorf("the password is in the log:\n%s", s.log)
	}
}

func TestSTARTTLSIsOfferedWithACertificate(t *testing.T) {
	t.Parallel()
	cert, key, pool := certFiles(t, t.TempDir(), "mx.example.com")
	swapped := []string{"POSTROOM_TLS_CERT=" + key, "POSTROOM_TLS_KEY=" + cert}
	if text := refused(t, t.TempDir(), swapped); !strings.Contains(text, "are not a certificate and its key") {
		t.Errorf("certificate and key swapped: %s", text)
	}

	s := serve(t, t.TempDir(), "POSTROOM_TLS_CERT="+cert, "POSTROOM_TLS_KEY="+key)
	c, err := smtp.Dial(s.smtp)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.StartTLS(&tls.Config{ServerName: "mx.example.com", RootCAs: pool, MinVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("STARTTLS: %v", err)
	}
}

// isReturnPath reports whether an address is one that bounces come back to.
func isReturnPath(address, domain string) bool {
	local, at, _ := strings.Cut(address, "@")
	return strings.HasPrefix(local, "bounce+") && len(local) > 30 && at == domain
}

// txtRecords are the TXT records of what `postroom domain show` says, by name.
func txtRecords(t *testing.T, zoneFile string) map[string]string {
	t.Helper()
	records := map[string]string{}
	for line := range strings.Lines(zoneFile) {
		if f := strings.Fields(line); len(f) > 4 && f[3] == "TXT" {
			_, rest, _ := strings.Cut(line, "TXT")
			records[strings.TrimSuffix(f[0], ".")] = strings.NewReplacer(`" "`, "", `"`, "").Replace(strings.TrimSpace(rest))
		}
	}
	if len(records) == 0 {
		t.Fatalf("no TXT records in\n%s", zoneFile)
	}
	return records
}
