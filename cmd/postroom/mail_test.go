package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/smtp"
	"strings"
	"testing"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/postroom/postroom/internal/waittest"
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
	mail := mx.Wait(t, 1)[0]
	becomes(t, s, id, "delivered")
	if mail.HELO != "out.example.com" || !isReturnPath(mail.From, "agents.example.com") {
		t.Errorf("HELO %q, MAIL FROM %q", mail.HELO, mail.From)
	}
	verifies(t, mail.Data, waitForSigningKeys(t, data, env))
}

// verifies checks the mail's DKIM signatures with the records that `postroom
// domain show` told the operator to publish.
func verifies(t *testing.T, mail []byte, records string) {
	t.Helper()
	verified, err := dkim.VerifyWithOptions(bytes.NewReader(mail), &dkim.VerifyOptions{
		LookupTXT: func(name string) ([]string, error) {
			for line := range strings.Lines(records) {
				if strings.HasPrefix(line, name+". ") {
					_, value, _ := strings.Cut(line, "TXT")
					return []string{strings.NewReplacer(`" "`, "", `"`, "", "\n", "").Replace(strings.TrimSpace(value))}, nil
				}
			}
			return nil, fmt.Errorf("no record %s", name)
		},
	})
	if err != nil || len(verified) != 2 {
		t.Fatalf("%d signatures, error %v, want 2", len(verified), err)
	}
	for _, v := range verified {
		if v.Err != nil || v.Domain != "agents.example.com" {
			t.Errorf("signature of %s: %v", v.Domain, v.Err)
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
