package main

import (
	"fmt"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestShutdownFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"late"}`)
		waited := make(chan map[string]any, 1)
		go func() {
			_, out := s.call(t, s.key, http.MethodGet, fmt.Sprintf("/v1/inboxes/%s/messages/wait?timeout=120", inbox["id"]), "")
			waited <- out
		}()
		c := smtpDial(t, s.smtp)
		c.ok(250, "EHLO test")
		c.ok(250, "MAIL FROM:<a@example.org>")
		c.ok(250, "RCPT TO:<late@postroom.localhost>")
		c.ok(354, "DATA")
		c.line("From: a@example.org")

		s.signal(t, syscall.SIGTERM)
		// The wait's answer says that the shutdown has begun.
		if out := <-waited; out["timed_out"] != true {
			t.Errorf("the wait was answered with %v", out)
		}
		c.line("Subject: in flight")
		c.line("")
		c.ok(250, ".")
		if err := s.wait(); err != nil {
			t.Errorf("serve ended with %v; its log:\n%s", err, s.log)
		}

		s = serve(t, data, env...)
		key, _, err := runCommand(t, data, env, "key", "create", "--name", "after")
		if err != nil {
			t.Fatal(err)
		}
		_, list := s.call(t, strings.TrimSpace(key), http.MethodGet, "/v1/messages", "")
		if data, ok := list["data"].([]any); !ok || len(data) != 1 {
			t.Errorf("after the restart there are these messages: %v", list)
		}
	})
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"slow"}`)
	waited := make(chan struct{})
	go func() {
		defer close(waited)
		s.call(t, s.key, http.MethodGet, fmt.Sprintf("/v1/inboxes/%s/messages/wait?timeout=120", inbox["id"]), "")
	}()
	c := smtpDial(t, s.smtp)
	c.ok(250, "EHLO test")
	c.ok(250, "MAIL FROM:<a@example.org>")
	c.ok(250, "RCPT TO:<slow@postroom.localhost>")
	c.ok(354, "DATA")
	s.signal(t, os.Interrupt)
	<-waited // the shutdown has begun, and waits for the rest of the mail
	start := time.Now()
	s.signal(t, os.Interrupt)
	if err := s.wait(); err == nil {
		t.Error("exit status 0, although mail was cut off")
	}
	if took := time.Since(start); took > stopTimeout/2 {
		t.Errorf("it took %v", took)
	}
}

// smtpConn speaks SMTP, line by line.
type smtpConn struct {
	t        *testing.T
	conn     net.Conn
	text     *textproto.Conn
	greeting string
}

func smtpDial(t *testing.T, addr string) *smtpConn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	c := &smtpConn{t: t, conn: conn, text: textproto.NewConn(conn)}
	if _, c.greeting, err = c.text.ReadResponse(220); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *smtpConn) line(s string) {
	c.t.Helper()
	if err := c.text.PrintfLine("%s", s); err != nil {
		c.t.Fatal(err)
	}
}

// ok sends a line and wants an answer with this code.
func (c *smtpConn) ok(code int, s string) {
	c.t.Helper()
	c.line(s)
	if _, _, err := c.text.ReadResponse(code); err != nil {
		c.t.Fatalf("%s: %v", s, err)
	}
}
