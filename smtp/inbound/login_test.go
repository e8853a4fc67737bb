package inbound

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/internal/spool"
	"github.com/postroom/postroom/smtp"
	"github.com/postroom/postroom/store/storetest"
)

const goodKey = "sk_live_good"

// submissions records what was submitted.
type submissions struct {
	mu       sync.Mutex
	messages []string
	envs     []smtp.Envelope
	logins   int
	refuse   error
}

func (s *submissions) login(_ context.Context, key string, _ netip.Addr) (Submit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins++
	if key == "panic" {
		panic("login")
	}
	if key != goodKey {
		return nil, &smtp.Reply{Code: 535, Enhanced: "5.7.8", Text: "unauthorized: missing or invalid API key"}
	}
	return s.submit, nil
}

func (s *submissions) submit(_ context.Context, env smtp.Envelope, raw *spool.Spool) (string, error) {
	r, err := raw.Reader()
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return "", s.refuse
	}
	s.messages, s.envs = append(s.messages, string(b)), append(s.envs, env)
	return fmt.Sprintf("queued as em_%d", len(s.messages)), nil
}

// submission serves submission on loopback.
func submission(t *testing.T, edits ...func(*ServerConfig)) (*submissions, string) {
	t.Helper()
	got := &submissions{}
	all := append([]func(*ServerConfig){func(c *ServerConfig) { c.Submission = &Submission{Login: got.login} }}, edits...)
	srv := newServer(t, newReceiver(t, storetest.OpenSQLite(t)), all...)
	return got, start(t, srv)
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func plain(key string) string { return encode("\x00api\x00" + key) }

func TestSubmission(t *testing.T) {
	t.Parallel()
	got, addr := submission(t, func(c *ServerConfig) { c.TLS = tlsConfig(t) })
	c := hello(t, addr)
	c.cmd("235 2.0.0", "AUTH PLAIN %s", plain(goodKey))
	c.cmd("503 5.5.1", "AUTH PLAIN %s", plain(goodKey))
	c.cmd("503 5.5.1 STARTTLS must", "STARTTLS")
	c.cmd("250", "MAIL FROM:<ann@in.example> AUTH=<>")
	c.cmd("501", "RCPT TO:<nowhere>")
	c.cmd("250", "RCPT TO:<bob@far.example>")
	c.cmd("250", "RCPT TO:<eve@far.example>")
	c.cmd("354", "DATA")
	raw := rawMail("..", "Hello.")
	c.send(strings.ReplaceAll(raw, "\r\n.", "\r\n..") + ".\r\n")
	c.want("250 2.0.0 queued as em_1")

	// A second message in the session needs no second login.
	c.begin("ann@in.example", "bob@far.example")
	c.send(strings.ReplaceAll(raw, "\r\n.", "\r\n..") + ".\r\n")
	c.want("250 2.0.0 queued as em_2")
	got.refuse = &smtp.Reply{Code: 550, Enhanced: "5.7.1", Text: "recipient_suppressed: bob@far.example is suppressed"}
	c.begin("ann@in.example", "bob@far.example")
	c.send(raw + ".\r\n")
	c.want("550 5.7.1 recipient_suppressed: bob@far.example is suppressed")
	got.refuse = errors.New("database: secret detail")
	c.begin("ann@in.example", "bob@far.example")
	c.send(raw + ".\r\n")
	if r := c.want("451 4.3.0"); strings.Contains(r, "secret") {
		t.Errorf("the reply has the cause: %s", r)
	}
	c.cmd("221", "QUIT")
	if len(got.messages) != 2 || got.messages[0] != raw || got.messages[1] != raw || fmt.Sprint(got.envs[0].RcptTo) != "[bob@far.example eve@far.example]" {
		t.Errorf("submitted %q %v", got.messages, got.envs)
	}
}

// Row S26 of docs/testing.md.
func TestSubmissionMechanisms(t *testing.T) {
	t.Parallel()
	_, addr := submission(t)
	for name, lines := range map[string][][2]string{
		"PLAIN":                  {{"AUTH PLAIN " + plain(goodKey), "235"}},
		"PLAIN in lower case":    {{"auth plain " + plain(goodKey), "235"}},
		"PLAIN with a challenge": {{"AUTH PLAIN", "334 "}, {plain(goodKey), "235"}},
		"PLAIN with an identity": {{"AUTH PLAIN " + encode("ann\x00bob\x00"+goodKey), "235"}},
		"LOGIN":                  {{"AUTH LOGIN", "334 VXNlcm5hbWU6"}, {encode("api"), "334 UGFzc3dvcmQ6"}, {encode(goodKey), "235"}},
		"LOGIN with a user":      {{"AUTH LOGIN " + encode("api"), "334 UGFzc3dvcmQ6"}, {encode(goodKey), "235"}},
		"LOGIN without a user":   {{"AUTH LOGIN", "334"}, {"", "334"}, {encode(goodKey), "235"}},
		"cancelled":              {{"AUTH LOGIN", "334"}, {"*", "501"}, {"NOOP", "250"}, {"AUTH PLAIN " + plain(goodKey), "235"}},
		"cancelled at the end":   {{"AUTH LOGIN", "334"}, {encode("api"), "334"}, {"*", "501"}, {"MAIL FROM:<a@in.example>", "530"}},
		"no base64":              {{"AUTH PLAIN !!", "454"}, {"AUTH PLAIN", "334"}, {"!!", "454"}, {"NOOP", "250"}},
		"not three texts":        {{"AUTH PLAIN " + encode(goodKey), "454"}, {"NOOP", "250"}},
		"empty":                  {{"AUTH PLAIN =", "454"}, {"AUTH", "502"}},
		"another mechanism":      {{"AUTH CRAM-MD5", "504 5.7.4"}, {"AUTH XOAUTH2 " + plain("x"), "504"}},
		"no login":               {{"MAIL FROM:<a@in.example>", "530 5.7.0 Authentication required"}, {"RCPT TO:<a@in.example>", "502"}, {"DATA", "502"}},
		"a command in a login":   {{"AUTH LOGIN", "334"}, {"MAIL FROM:<a@in.example>", "454"}, {"MAIL FROM:<a@in.example>", "530"}},
		"a panic":                {{"AUTH PLAIN " + plain("panic"), "421 4.0.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := hello(t, addr)
			for _, l := range lines {
				c.cmd(l[1], "%s", l[0])
			}
		})
	}
	c := dial(t, addr)
	c.want("220")
	c.cmd("502", "AUTH PLAIN %s", plain(goodKey))
	c.cmd("250", "EHLO client.example")
	c.cmd("235", "AUTH PLAIN %s", plain(goodKey))
	c.cmd("250", "MAIL FROM:<a@in.example>")
	c.cmd("503", "AUTH PLAIN %s", plain(goodKey))
}

// A client may guess a few keys in a session. The API counts wrong keys by address
// (S26).
func TestSubmissionLimitsGuesses(t *testing.T) {
	t.Parallel()
	got, addr := submission(t)
	c := hello(t, addr)
	for range maxLogins {
		c.cmd("535 5.7.8 unauthorized", "AUTH PLAIN %s", plain("guess"))
	}
	c.wantClosed()
	text := talk(t, addr, "EHLO c.example\r\n"+strings.Repeat("AUTH PLAIN "+plain("guess")+"\r\n", 500)+"QUIT\r\n")
	if n := strings.Count(text, "535"); n != maxLogins || got.logins != 2*maxLogins {
		t.Errorf("%d guesses, %d logins:\n%s", n, got.logins, text)
	}
	for _, long := range []string{"AUTH PLAIN " + strings.Repeat("A", 1<<20), "AUTH PLAIN\r\n" + strings.Repeat("A", 1<<20)} {
		if text := talk(t, addr, "EHLO c.example\r\n"+long+"\r\nNOOP\r\n"); !strings.HasSuffix(text, "500 5.5.2 Line too long, closing connection\r\n") {
			t.Errorf("a long line:\n%s", text)
		}
	}
	if text := talk(t, addr, "EHLO c.example\r\nAUTH LOGIN\r\n"+encode("api")+"\n"+encode(goodKey)+"\r\n"); !strings.Contains(text, "500 5.5.2 Lines must end") {
		t.Errorf("a bare LF:\n%s", text)
	}
	if text := talk(t, addr, "EHLO c.example\r\n"+strings.Repeat("AUTH LOGIN\r\n*\r\n", 200)); !strings.Contains(text, "421") {
		t.Errorf("endless cancelling:\n%s", text)
	}
}

// pausing is a client that pauses for too long after the first of its parts.
type pausing struct{ parts []string }

func (p *pausing) Read(b []byte) (int, error) {
	if len(p.parts) == 0 {
		return 0, io.EOF
	}
	part := p.parts[0]
	if p.parts = p.parts[1:]; part == "" {
		return 0, os.ErrDeadlineExceeded
	}
	return copy(b, part), nil
}

// The library goes on after a response to a challenge that does not come.
func TestSessionEndsAtAPause(t *testing.T) {
	t.Parallel()
	srv, k := keeping(t, submitsToReceiver)
	const mail = "EHLO x\r\nMAIL FROM:<a@out.example>\r\nRCPT TO:<" + bot + ">\r\n"
	for begin, want := range map[string]string{
		"EHLO x\r\nAUTH LOGIN\r\n":                         "220 250 334 421",
		mail + "DATA\r\n" + strings.Repeat("x\r\n", 1<<10): "220 250 250 250 354 421",
	} {
		if got := strings.Join(codes(converse(t, srv, &pausing{[]string{begin, "", ".\r\nNOOP\r\n"}})), " "); got != want || len(k.kept) > 0 {
			t.Errorf("replies %s, want %s; stored %q", got, want, k.kept)
		}
	}
}

// Row S26 of docs/testing.md.
func TestSubmissionNeedsTLS(t *testing.T) {
	t.Parallel()
	got := &submissions{}
	srv := newServer(t, newReceiver(t, storetest.OpenSQLite(t)), func(c *ServerConfig) {
		c.Submission, c.TLS = &Submission{Login: got.login}, tlsConfig(t)
	})
	srv.sameHost = func(netip.Addr) bool { return false }
	c := dial(t, start(t, srv))
	c.want("220")
	if offers := c.cmd("250", "EHLO client.example"); strings.Contains(offers, "AUTH") {
		t.Errorf("AUTH is offered in clear: %s", offers)
	}
	c.cmd("538 5.7.11", "AUTH PLAIN %s", plain(goodKey))
	c.cmd("538 5.7.11", "AUTH LOGIN")
	c.cmd("530 5.7.0 STARTTLS", "MAIL FROM:<a@in.example>")
	// What follows STARTTLS in clear is never run (CVE-2011-0411).
	c.send("STARTTLS\r\nEHLO evil.example\r\nAUTH PLAIN " + plain(goodKey) + "\r\nMAIL FROM:<evil@in.example>\r\n")
	c.want("220")
	c.upgrade()
	c.cmd("503 5.5.1 EHLO first", "AUTH PLAIN %s", plain(goodKey))
	if offers := c.cmd("250", "EHLO client.example"); !strings.Contains(offers, "AUTH PLAIN LOGIN") {
		t.Errorf("AUTH is not offered in TLS: %s", offers)
	}
	c.cmd("530 5.7.0 Authentication", "MAIL FROM:<a@in.example>")
	if got.logins != 0 {
		t.Errorf("%d logins before a key could be sent", got.logins)
	}
	c.cmd("235", "AUTH PLAIN %s", plain(goodKey))
	c.cmd("250", "MAIL FROM:<a@in.example>")
}

func TestSubmissionWithImplicitTLS(t *testing.T) {
	t.Parallel()
	got, addr := submission(t, func(c *ServerConfig) { c.TLS, c.ImplicitTLS = tlsConfig(t), true })
	c, err := gosmtp.DialTLS(addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if ok, _ := c.Extension("STARTTLS"); ok {
		t.Error("STARTTLS is offered in TLS")
	}
	if err := c.Auth(sasl.NewPlainClient("", "api", goodKey)); err != nil {
		t.Fatal(err)
	}
	if err := c.SendMail("a@in.example", []string{"b@far.example"}, strings.NewReader(rawMail("Hello."))); err != nil {
		t.Fatal(err)
	}
	if len(got.envs) != 1 || !got.envs[0].TLS {
		t.Errorf("submitted %v", got.envs)
	}
	if text := talk(t, addr, "EHLO c.example\r\nNOOP\r\n"); strings.Contains(text, "250") || strings.Contains(text, "220") {
		t.Errorf("a client without TLS: %q", text)
	}
}
