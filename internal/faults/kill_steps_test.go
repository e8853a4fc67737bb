package faults_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/smtp/smtptest"
)

// killStep is a step to die at, and how many copies may arrive then: two when the
// message or the webhook was sent and its result was not stored, otherwise one.
type killStep struct {
	at             crashpoint.Step
	messages, hook int
}

var killSteps = []killStep{
	{crashpoint.Accept, 1, 1},
	{crashpoint.Queue, 1, 1},
	{crashpoint.Claim, 1, 1},
	{crashpoint.Connect, 1, 1},
	{crashpoint.Mail, 1, 1},
	{crashpoint.Rcpt, 1, 1},
	{crashpoint.Data, 1, 1},
	{crashpoint.Dot, 2, 1},
	{crashpoint.Reply, 2, 1},
	{crashpoint.Mark, 2, 1},
	{crashpoint.Event, 2, 1},
	{crashpoint.WebhookClaim, 1, 1},
	{crashpoint.WebhookPost, 1, 2},
	{crashpoint.WebhookMark, 1, 2},
}

// TestKillAtAnyDeliveryStepLosesNothing kills the service at each step of an outbound
// message. The accepted message and its webhooks arrive. Only what was sent without
// its result being stored may arrive twice. Row C4 of docs/testing.md.
func TestKillAtAnyDeliveryStepLosesNothing(t *testing.T) {
	t.Parallel()
	program, err := withCrashpoints()
	if err != nil {
		t.Fatal(err)
	}
	onEachEngine(t, func(t *testing.T, in *installation) {
		in.program = program
		s := newStepwise(t, in)
		for i, step := range killSteps {
			for round := range pick(1, 20) {
				s.kill(t, step, fmt.Sprintf("%s-%06d-end", step.at, 1000*i+round))
			}
		}
		t.Logf("%d kills at %d steps: %d messages arrived twice, %d webhooks", s.kills, len(killSteps), s.messagesTwice, s.hooksTwice)
	})
}

// stepwise is an installation that sends to an SMTP server and a webhook endpoint of
// the test.
type stepwise struct {
	in   *installation
	sink *smtptest.MX
	hook *endpoint

	kills, messagesTwice, hooksTwice int
}

func newStepwise(t *testing.T, in *installation) *stepwise {
	t.Helper()
	s := &stepwise{in: in, sink: smtptest.NewMX(t, smtptest.MXConfig{}), hook: newEndpoint(t)}
	dns := smtptest.NewDNS(t, smtptest.Zones{}.Domain("out.example", s.sink.IP()))
	in.settings = append(in.settings, "POSTROOM_RESOLVER="+dns, fmt.Sprintf("POSTROOM_MX_PORT=%d", s.sink.Port()),
		"POSTROOM_MX_ALLOW=127.0.0.0/8", "POSTROOM_WEBHOOK_ALLOW=127.0.0.0/8")
	in.start()
	c := in.current().caller()
	defer c.close()
	// Not email.queued: its webhook is posted while the message is sent, so a kill at a
	// step of one could hit any step of the other.
	body := map[string]any{"url": s.hook.url, "events": hooked}
	if err := c.call(t.Context(), http.StatusCreated, nil, http.MethodPost, "/v1/webhooks", body); err != nil {
		t.Fatal(err)
	}
	return s
}

// kill sends one message, lets the service die at the step, starts it again, and
// checks what arrives.
func (s *stepwise) kill(t *testing.T, step killStep, id string) {
	t.Helper()
	s.in.stop()
	settings := s.in.settings
	s.in.settings = append(slices.Clip(settings), crashVariable+"="+string(step.at))
	n := s.in.start()
	responded := s.send(t, n, id) == nil
	<-n.exited
	s.in.set(nil)
	s.kills++
	if !killed(n.err) {
		t.Fatalf("%s: the program ended by itself: %v", step.at, n.err)
	}
	if step.at == crashpoint.Accept && responded {
		t.Errorf("%s: the call returned before the commit", step.at)
	}
	s.in.settings = settings
	s.in.hurry(t.Context())
	n = s.in.start()
	if !responded { // retry, like a client without a response
		if err := s.send(t, n, id); err != nil {
			t.Fatal(err)
		}
	}
	s.audit(t, step, id)
}

// hooked are the events that the endpoint receives.
var hooked = []string{"email.sent", "email.delivered"}

const crashVariable = "POSTROOM_TEST_CRASH_AT"

func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (s *stepwise) send(t *testing.T, n *node, id string) error {
	t.Helper()
	c := n.caller()
	defer c.close()
	body := map[string]any{"from": "hello@" + mailDomain, "to": "bob@out.example", "subject": id, "text": bodyMark(id)}
	return c.call(t.Context(), http.StatusCreated, nil, http.MethodPost, "/v1/emails", body, "Idempotency-Key", id)
}

// audit waits for the message and its webhooks.
func (s *stepwise) audit(t *testing.T, step killStep, id string) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%s: the message is delivered and its events are posted", step.at), func() bool {
		return s.hook.has(id, hooked)
	})
	s.in.settle()
	for _, typ := range append([]string{"email.queued"}, hooked...) {
		events := `SELECT count(*) FROM events e JOIN messages m ON m.seq = e.message_seq WHERE m.subject = '` + id + `' AND e.type = '` + typ + `'`
		if n := s.in.count(events); n != 1 {
			t.Errorf("%s: %d events %s, want 1", step.at, n, typ)
		}
	}
	var copies []smtptest.Message
	for _, m := range s.sink.Messages() {
		if strings.Contains(string(m.Data), "Subject: "+id) {
			copies = append(copies, m)
		}
	}
	if len(copies) == 0 || len(copies) > step.messages {
		t.Errorf("%s: %d copies arrived, want 1 to %d", step.at, len(copies), step.messages)
	}
	for _, m := range copies[min(1, len(copies)):] {
		s.messagesTwice++
		if unsigned(m.Data) != unsigned(copies[0].Data) {
			t.Errorf("%s: a copy differs from the first", step.at)
		}
	}
	for _, typ := range hooked {
		ids := s.hook.posts(id, typ)
		if len(ids) != 1 {
			t.Errorf("%s: %d events %s were posted, want 1", step.at, len(ids), typ)
		}
		for _, posts := range ids {
			if posts > step.hook {
				t.Errorf("%s: %s was posted %d times", step.at, typ, posts)
			}
			s.hooksTwice += posts - 1
		}
	}
}

// unsigned returns a message without the signatures in front of it. Their times may
// differ when the first copy was not stored.
func unsigned(data []byte) string {
	_, mail, _ := strings.Cut(string(data), "\r\nFrom:")
	return mail
}

// endpoint is a webhook endpoint that counts the posts that it receives.
type endpoint struct {
	url string

	mu  sync.Mutex
	got map[string]map[string]map[string]int // posts by subject, event type and event
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	e := &endpoint{got: map[string]map[string]map[string]int{}}
	srv := httptest.NewServer(http.HandlerFunc(e.take))
	t.Cleanup(srv.Close)
	e.url = srv.URL
	return e
}

func (e *endpoint) take(w http.ResponseWriter, r *http.Request) {
	var event struct {
		ID, Type string
		Data     struct{ Subject string }
	}
	if err := json.NewDecoder(r.Body).Decode(&event); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	types := e.got[event.Data.Subject]
	if types == nil {
		types = map[string]map[string]int{}
		e.got[event.Data.Subject] = types
	}
	if types[event.Type] == nil {
		types[event.Type] = map[string]int{}
	}
	types[event.Type][event.ID]++
}

// has reports whether every type of event was posted.
func (e *endpoint) has(subject string, types []string) bool {
	for _, typ := range types {
		if len(e.posts(subject, typ)) == 0 {
			return false
		}
	}
	return true
}

// posts returns how often each event of a type was posted.
func (e *endpoint) posts(subject, typ string) map[string]int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.got[subject][typ])
}
