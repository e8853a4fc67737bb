package faults_test

import (
	"crypto/sha256"
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
	"time"

	"github.com/postroom/postroom/internal/crashpoint"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store/storetest"
)

// killStep is a step to die at, and how many copies may arrive then: two when the
// message or the webhook was sent and its result was not stored, otherwise one.
type killStep struct {
	at             crashpoint.Step
	messages, hook int
	draft          bool // the message is a draft that a person approves
}

var killSteps = []killStep{
	{at: crashpoint.Accept, messages: 1, hook: 1},
	{at: crashpoint.Queue, messages: 1, hook: 1},
	{at: crashpoint.Claim, messages: 1, hook: 1},
	{at: crashpoint.Connect, messages: 1, hook: 1},
	{at: crashpoint.Mail, messages: 1, hook: 1},
	{at: crashpoint.Rcpt, messages: 1, hook: 1},
	{at: crashpoint.Data, messages: 1, hook: 1},
	{at: crashpoint.Dot, messages: 2, hook: 1},
	{at: crashpoint.Reply, messages: 2, hook: 1},
	{at: crashpoint.Mark, messages: 2, hook: 1},
	{at: crashpoint.Event, messages: 2, hook: 1},
	{at: crashpoint.WebhookClaim, messages: 1, hook: 1},
	{at: crashpoint.WebhookPost, messages: 1, hook: 2},
	{at: crashpoint.WebhookMark, messages: 1, hook: 2},
	{at: crashpoint.Schedule, messages: 1, hook: 1, draft: true},
	{at: crashpoint.Due, messages: 1, hook: 1, draft: true},
	{at: crashpoint.Claim, messages: 1, hook: 1, draft: true},
	{at: crashpoint.Reply, messages: 2, hook: 1, draft: true},
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
	in     *installation
	sink   *smtptest.MX
	hook   *endpoint
	guests inbox // whose mail a person approves

	kills, messagesTwice, hooksTwice int
}

func newStepwise(t *testing.T, in *installation) *stepwise {
	t.Helper()
	s := &stepwise{in: in, sink: smtptest.NewMX(t, smtptest.MXConfig{}), hook: newEndpoint(t)}
	dns := smtptest.NewDNS(t, smtptest.Zones{}.Domain("out.example", s.sink.IP()))
	in.settings = append(in.settings, "POSTROOM_RESOLVER="+dns, fmt.Sprintf("POSTROOM_MX_PORT=%d", s.sink.Port()),
		"POSTROOM_MX_ALLOW=127.0.0.0/8", "POSTROOM_WEBHOOK_ALLOW=127.0.0.0/8", "POSTROOM_UNDO=300ms")
	in.start()
	c := in.current().caller()
	defer c.close()
	// Not email.queued: its webhook is posted while the message is sent, so a kill at a
	// step of one could hit any step of the other.
	body := map[string]any{"url": s.hook.url, "events": append(hooked("email"), hooked("message")...)}
	err := c.call(t.Context(), http.StatusCreated, nil, http.MethodPost, "/v1/webhooks", body)
	if err == nil {
		err = c.call(t.Context(), http.StatusCreated, &s.guests, http.MethodPost, "/v1/inboxes", map[string]any{"send_policy": "approval"})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.signIn(t)
	return s
}

const session = "session of the approver"

// signIn gives an approver a session of the dashboard.
func (s *stepwise) signIn(t *testing.T) {
	t.Helper()
	db, err := s.in.openDatabase()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // nothing is left to write
	now, hash := time.Now(), sha256.Sum256([]byte(session))
	_, err = db.ExecContext(t.Context(), `INSERT INTO users (account_id, id, name, role, created_at) SELECT seq, 'usr_ann', 'ann', 'approver', 1 FROM accounts ORDER BY seq LIMIT 1`)
	if err == nil {
		_, err = db.ExecContext(t.Context(), `INSERT INTO user_sessions (hash, user_seq, expires_at, last_used_at, created_at)
			SELECT cast($1 AS `+map[bool]string{true: "bytea", false: "blob"}[s.in.engine == storetest.PostgreSQL]+`), seq, $2, $3, $3 FROM users WHERE id = 'usr_ann'`,
			hash[:], now.Add(time.Hour).UnixMicro(), now.UnixMicro())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// approve creates a draft, unless that is done, and approves it as a person.
func (s *stepwise) approve(t *testing.T, c *caller, id string) error {
	t.Helper()
	var d struct {
		ID string `json:"id"`
	}
	body := map[string]any{"to": "bob@out.example", "subject": id, "text": bodyMark(id)}
	if err := c.call(t.Context(), http.StatusAccepted, &d, http.MethodPost, "/v1/inboxes/"+s.guests.ID+"/messages", body, "Idempotency-Key", id); err != nil {
		return err
	}
	form := strings.NewReader("version=1")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+"/approvals/"+d.ID+"/approve", form)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	req.AddCookie(&http.Cookie{Name: "postroom_session", Value: session}) //nolint:gosec // only for this request
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("approving draft %s: %s", d.ID, res.Status)
	}
	return nil
}

// kill sends one message, lets the service die at the step, starts it again, and
// checks what arrives.
func (s *stepwise) kill(t *testing.T, step killStep, id string) {
	t.Helper()
	s.in.stop()
	settings := s.in.settings
	s.in.settings = append(slices.Clip(settings), crashVariable+"="+string(step.at))
	n := s.in.start()
	responded := s.send(t, n, step, id) == nil
	<-n.exited
	s.in.set(nil)
	s.kills++
	if !killed(n.err) {
		t.Fatalf("%s: the program ended by itself: %v", step.at, n.err)
	}
	if (step.at == crashpoint.Accept || step.at == crashpoint.Schedule) && responded {
		t.Errorf("%s: the call returned before the commit", step.at)
	}
	s.in.settings = settings
	s.in.hurry(t.Context())
	n = s.in.start()
	if !responded { // retry, like a client without a response
		if err := s.send(t, n, step, id); err != nil {
			t.Fatal(err)
		}
	}
	s.audit(t, step, id)
}

// hooked are the events of an email or message that the endpoint receives.
func hooked(kind string) []string { return []string{kind + ".sent", kind + ".delivered"} }

const crashVariable = "POSTROOM_TEST_CRASH_AT"

func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func (s *stepwise) send(t *testing.T, n *node, step killStep, id string) error {
	t.Helper()
	c := n.caller()
	defer c.close()
	if step.draft {
		return s.approve(t, c, id)
	}
	body := map[string]any{"from": "hello@" + mailDomain, "to": "bob@out.example", "subject": id, "text": bodyMark(id)}
	return c.call(t.Context(), http.StatusCreated, nil, http.MethodPost, "/v1/emails", body, "Idempotency-Key", id)
}

// audit waits for the message and its webhooks.
func (s *stepwise) audit(t *testing.T, step killStep, id string) {
	t.Helper()
	kind := "email"
	if step.draft {
		kind = "message"
	}
	hooked := hooked(kind)
	waittest.Until(t, fmt.Sprintf("%s: the message is delivered and its events are posted", step.at), func() bool {
		return s.hook.has(id, hooked)
	})
	s.in.settle()
	for _, typ := range append([]string{kind + ".queued"}, hooked...) {
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
