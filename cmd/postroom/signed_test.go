//go:build clients

package main

import (
	"bytes"
	"fmt"
	"net"
	"net/mail"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/postroom/postroom/smtp/smtptest"
)

// outside is the world that mail goes to: one server for every domain, which
// speaks TLS, and what there is in the DNS.
type outside struct {
	mx    *smtptest.MX
	zones smtptest.Zones
	env   []string // settings of a service that sends there as agents.example.com
	http  string   // where its API listens
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	cfg, _ := smtptest.NewTLS(t, "127.0.0.1")
	o := &outside{mx: smtptest.NewMX(t, smtptest.MXConfig{TLS: cfg, UTF8: true})}
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free, most likely still in a moment
	if err != nil {
		t.Fatal(err)
	}
	o.http = l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	o.zones = smtptest.Zones{}.Domain("outside.example", o.mx.IP()).Domain("xn--bcher-kva.example", o.mx.IP())
	o.env = []string{
		"POSTROOM_RESOLVER=" + smtptest.NewDNS(t, o.zones), fmt.Sprintf("POSTROOM_MX_PORT=%d", o.mx.Port()),
		"POSTROOM_MX_ALLOW=127.0.0.0/8", "POSTROOM_MAIL_DOMAIN=agents.example.com", "POSTROOM_HOSTNAME=out.example.com",
		"POSTROOM_RATE_LIMITS=off", "POSTROOM_BASE_URL=https://mail.example.com", "POSTROOM_HTTP=" + o.http,
	}
	return o
}

// serve starts the service, whose links begin with another address than that at
// which it listens.
func (o *outside) serve(t *testing.T, data string) *served {
	t.Helper()
	s := serve(t, data, o.env...)
	s.api = "http://" + o.http
	return s
}

// take waits until so many recipients have got their mail, and returns each mail
// once: it may come anew for each recipient.
func (o *outside) take(t *testing.T, recipients int) []smtptest.Message {
	t.Helper()
	seen := map[string]bool{}
	var once []smtptest.Message
	for have, n := 0, 0; have < recipients; {
		messages := o.mx.Wait(t, n+1)
		for _, m := range messages[n:] {
			have += len(m.To)
			if id := headerID(t, m); !seen[id] {
				seen[id] = true
				once = append(once, m)
			}
		}
		n = len(messages)
	}
	return once
}

func headerID(t *testing.T, m smtptest.Message) string {
	t.Helper()
	parsed, err := mail.ReadMessage(bytes.NewReader(m.Data))
	if err != nil {
		t.Fatalf("%v\n%.1000s", err, m.Data)
	}
	return parsed.Header.Get("Message-ID")
}

func write(t *testing.T, folder, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// changeSome writes modified messages, whose signatures must fail, and returns
// their number.
func changeSome(t *testing.T, folder string, messages []smtptest.Message) int {
	t.Helper()
	n := 0
	for i, m := range messages[:min(5, len(messages))] {
		header, body, _ := bytes.Cut(m.Data, []byte("\r\n\r\n"))
		for name, mail := range map[string][]byte{
			"from":    slices.Concat([]byte("From: eve@evil.example\r\n"), m.Data),
			"subject": slices.Concat(header, []byte("\r\nSubject: another\r\n\r\n"), body),
			"body":    slices.Concat(m.Data, []byte("more\r\n")),
		} {
			write(t, folder, fmt.Sprintf("changed-%s-%d.eml", name, i), mail)
			n++
		}
	}
	return n
}

// logHeaders shows the headers of what failed in the test's log.
func logHeaders(t *testing.T, messages []smtptest.Message) {
	t.Helper()
	for i, m := range messages {
		if parsed, err := mail.ReadMessage(bytes.NewReader(m.Data)); err == nil {
			t.Logf("%04d.eml: %v", i, parsed.Header)
		}
	}
}
