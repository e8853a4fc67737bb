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

// TestNoPackets watches the system calls of the program. What a test-mode key
// sends, through either area and to every simulated outcome, reaches no network
// (H21), and neither does mail to somebody whose address has bounced for good (O7).
// Every packet of ours begins with a call of connect: to a server, or to the DNS.
func TestNoPackets(t *testing.T) {
	t.Parallel()
	onEachEngine(t, func(t *testing.T, in *install) {
		p := &packets{in: in, sink: smtptest.NewMX(t, smtptest.MXConfig{Rcpt: func(rcpt string) error {
			if strings.HasPrefix(rcpt, "gone") {
				return smtptest.Refuse(550, [3]int{5, 1, 1}, "no such user")
			}
			return nil
		}})}
		dns := smtptest.NewDNS(t, smtptest.Zones{}.Domain("out.example", p.sink.IP()))
		in.settings = append(in.settings, "POSTROOM_RESOLVER="+dns, fmt.Sprintf("POSTROOM_MX_PORT=%d", p.sink.Port()), "POSTROOM_MX_ALLOW=127.0.0.0/8")

		// That the trace shows what there is.
		if n := p.traced(t, func() {
			p.email(t, firstKey, http.StatusCreated, "gone@out.example")
			p.in.settle()
		}); n == 0 || p.sink.Conns() != 1 {
			t.Fatalf("%d calls of connect for a live mail, %d connections", n, p.sink.Conns())
		}
		if n := p.traced(t, func() {
			p.send(t, firstKey, http.StatusUnprocessableEntity, "gone@out.example")
			p.send(t, p.testKey(t), http.StatusCreated, simulated...)
			p.in.hurry(t.Context()) // what is delayed
			p.in.settle()
		}); n != 0 || p.sink.Conns() != 1 {
			t.Errorf("%d calls of connect, %d connections, want none more", n, p.sink.Conns())
		}
		// Taken from the list, the address is tried again.
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
	in   *install
	sink *smtptest.MX
}

// traced serves the install while do runs, and returns how often the program
// began a connection over IP.
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

// send sends a mail from each area to each of the recipients.
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

// into is call with the body of the answer in out.
func (p *packets) into(t *testing.T, out any, key string, want int, method, path string, body any) {
	t.Helper()
	c := p.in.current().caller()
	defer c.close()
	if err := c.call(context.WithoutCancel(t.Context()), want, out, method, path, body, "Authorization", "Bearer "+key); err != nil {
		t.Fatal(err)
	}
}
