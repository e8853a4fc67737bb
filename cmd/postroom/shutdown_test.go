package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/smtp"
	"os"
	"strings"
	"testing"
	"time"
)

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	_, inbox := s.call(t, s.key, http.MethodPost, "/v1/inboxes", `{"name":"slow"}`)
	wait, err := net.Dial("tcp", strings.TrimPrefix(s.api, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = wait.Close() }()
	request := fmt.Sprintf("GET /v1/inboxes/%s/messages/wait?timeout=120 HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n\r\n", inbox["id"], s.key)
	if _, err := io.WriteString(wait, request); err != nil {
		t.Fatal(err)
	}
	// While mail is begun, the request arrives.
	c, err := smtp.Dial(s.smtp)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	err = errors.Join(c.Mail("a@example.org"), c.Rcpt("slow@postroom.localhost"))
	if _, begun := c.Data(); err != nil || begun != nil {
		t.Fatal(err, begun)
	}
	s.signal(t, os.Interrupt)
	// The response to the wait shows that the shutdown has begun, which waits for the mail.
	if line, err := bufio.NewReader(wait).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 503 ") {
		t.Errorf("the wait ended with %q, %v", line, err)
	}
	start := time.Now()
	s.signal(t, os.Interrupt)
	if err := s.wait(); err == nil {
		t.Error("exit status 0, although mail was cut off")
	}
	if took := time.Since(start); took > stopTimeout/2 {
		t.Errorf("it took %v", took)
	}
}
