package faults_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/smtp/smtptest"
)

// TestSimulatedAndSuppressedMailSendsNoPackets traces the system calls of the program.
// A message sent with a test-mode key, through either area and to every simulated
// outcome, causes no network traffic. Neither does a message to an address with a
// hard bounce. Every outbound packet requires a connect call first: to a server, or to
// the DNS. Rows H21 and O7 of docs/testing.md.
func TestSimulatedAndSuppressedMailSendsNoPackets(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *installation) {
		p := &packets{in: in, sink: smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(rcpt string) error {
			if strings.HasPrefix(rcpt, "gone") {
				return smtptest.Refuse(550, [3]int{5, 1, 1}, "no such user")
			}
			return nil
		}})}
		dns := smtptest.NewDNS(t, smtptest.Zones{}.Domain("out.example", p.sink.IP()))
		in.settings = append(in.settings, "POSTROOM_RESOLVER="+dns, fmt.Sprintf("POSTROOM_MX_PORT=%d", p.sink.Port()), "POSTROOM_MX_ALLOW=127.0.0.0/8")

		// The trace shows what is sent.
		if n := p.traced(t, func() {
			p.email(t, firstKey, http.StatusCreated, "gone@out.example")
			p.in.settle()
		}); n == 0 || p.sink.Conns() != 1 {
			t.Fatalf("%d calls of connect for a message in live mode, %d connections", n, p.sink.Conns())
		}
		if n := p.traced(t, func() {
			p.send(t, firstKey, http.StatusUnprocessableEntity, "gone@out.example")
			p.send(t, p.testKey(t), http.StatusCreated, simulated...)
			p.in.hurry(t.Context()) // delayed deliveries
			p.in.settle()
		}); n != 0 || p.sink.Conns() != 1 {
			t.Errorf("%d calls of connect, %d connections, want none more", n, p.sink.Conns())
		}
		// Once the suppression is deleted, the address gets mail again.
		if n := p.traced(t, func() {
			p.call(t, firstKey, http.StatusOK, http.MethodDelete, "/v1/suppressions/gone@out.example", nil)
			p.email(t, firstKey, http.StatusCreated, "gone@out.example")
			p.in.settle()
		}); n == 0 || p.sink.Conns() != 2 {
			t.Errorf("%d calls of connect after the removal, %d connections in all", n, p.sink.Conns())
		}
	})
}

// simulated are recipients with every outcome that a test-mode key can have.
var simulated = []string{
	"ann@out.example", "bounced@out.example", "hardbounce@out.example", "softbounce@out.example", "complained@out.example",
	"failed@out.example", "opened@out.example", "clicked@out.example", "ann+delayed@out.example", "suppressed@out.example",
	"someone@" + mailDomain,
}

type packets struct {
	in   *installation
	sink *smtptest.MX
}

// traced serves the installation while do runs, and returns how often the program
// opened a connection over IP.
func (p *packets) traced(t *testing.T, do func()) int {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	p.in.start(findStrace(t), "-D", "-f", "-yy", "--seccomp-bpf", "-o", file, "-e", "trace=connect")
	do()
	p.in.stop()
	trace, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(trace)) {
		if strings.Contains(line, "connect(") && strings.Contains(line, "sa_family=AF_INET") {
			n++
		}
	}
	return n
}

// send sends a message from each area to each of the recipients.
func (p *packets) send(t *testing.T, key string, want int, to ...string) {
	t.Helper()
	var box inbox
	p.into(t, &box, key, http.StatusCreated, http.MethodPost, "/v1/inboxes", map[string]any{})
	for _, rcpt := range to {
		body := map[string]any{"to": rcpt, "subject": "s", "text": "t"}
		p.call(t, key, want, http.MethodPost, "/v1/inboxes/"+box.ID+"/messages", body)
		p.email(t, key, want, rcpt)
	}
}

func (p *packets) email(t *testing.T, key string, want int, to string) {
	t.Helper()
	body := map[string]any{"from": "hello@" + mailDomain, "to": to, "subject": "s", "text": "t"}
	p.call(t, key, want, http.MethodPost, "/v1/emails", body)
}

func (p *packets) testKey(t *testing.T) string {
	t.Helper()
	var key struct{ Key string }
	p.into(t, &key, firstKey, http.StatusCreated, http.MethodPost, "/v1/keys", map[string]any{"name": "test", "mode": "test"})
	return key.Key
}

func (p *packets) call(t *testing.T, key string, want int, method, path string, body any) {
	t.Helper()
	p.into(t, nil, key, want, method, path, body)
}

// into is call that decodes the response body into out.
func (p *packets) into(t *testing.T, out any, key string, want int, method, path string, body any) {
	t.Helper()
	c := p.in.current().caller()
	defer c.close()
	if err := c.call(context.WithoutCancel(t.Context()), want, out, method, path, body, "Authorization", "Bearer "+key); err != nil {
		t.Fatal(err)
	}
}
