package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestShutdownFinishesWorkInFlight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"late"}`)
		waited := s.startWait(t, inbox["id"])
		c := smtpDial(t, s.smtp)
		c.ok(250, "EHLO test")
		c.ok(250, "MAIL FROM:<a@example.org>")
		c.ok(250, "RCPT TO:<late@postroom.localhost>")
		c.ok(354, "DATA")
		c.line("From: a@example.org")

		s.signal(t, syscall.SIGTERM)
		// The response to the wait shows that the shutdown has begun.
		out := <-waited
		if fault, _ := out["error"].(map[string]any); fault["code"] != "unavailable" || out["Retry-After"] != "1" {
			t.Errorf("the wait ended with %v", out)
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
	waited := s.startWait(t, inbox["id"])
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

// Event streams end at once and cleanly on shutdown, even if the client reads
// nothing.
func TestShutdownEndsStreams(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		s := serve(t, data, env...)
		reading, idle := s.openStream(t), s.openStream(t)
		start := time.Now()
		s.signal(t, syscall.SIGTERM)
		if rest, err := io.ReadAll(reading.Body); err != nil || strings.Contains(string(rest), "data:") {
			t.Errorf("the stream ended with %q, %v", rest, err)
		}
		if err := s.wait(); err != nil {
			t.Errorf("serve ended with %v; its log:\n%s", err, s.log)
		}
		// A second is for connections that are kept open.
		if took := time.Since(start); took > stopTimeout/2 {
			t.Errorf("it took %v", took)
		} else {
			t.Logf("ended after %v", took)
		}
		_ = idle.Body.Close() // not read
	})
}

// openStream opens a stream of events.
func (s *served) openStream(t *testing.T) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.api+"/v1/events/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	res, err := watched().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		t.Fatalf("open a stream: %s", res.Status)
	}
	return res
}

// startWait sends a request that waits for a message. The request has been sent
// when startWait returns; the channel delivers the response, or is closed if
// there is none.
func (s *served) startWait(t *testing.T, inboxID any) <-chan map[string]any {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.api, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	request := fmt.Sprintf("GET /v1/inboxes/%s/messages/wait?timeout=120 HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n",
		inboxID, s.key)
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	response := make(chan map[string]any, 1)
	go func() {
		defer close(response)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("no response to the wait: %v", err)
			return
		}
		defer func() { _ = res.Body.Close() }()
		var out map[string]any
		body, err := io.ReadAll(res.Body)
		if err := errors.Join(err, json.Unmarshal(body, &out)); err != nil {
			t.Errorf("response to the wait: %v", err)
			return
		}
		exchanges.Exchanged(request, res, body)
		if after := res.Header.Get("Retry-After"); after != "" {
			out["Retry-After"] = after
		}
		response <- out
	}()
	return response
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

// ok sends a line and expects a reply with this code.
func (c *smtpConn) ok(code int, s string) {
	c.t.Helper()
	c.line(s)
	if _, _, err := c.text.ReadResponse(code); err != nil {
		c.t.Fatalf("%s: %v", s, err)
	}
}
