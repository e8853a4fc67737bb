package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ledger is what clients were promised, and what broke.
type ledger struct {
	mu       sync.Mutex
	subjects map[string]bool // accepted with 250
	inboxes  map[string]bool // names accepted with 201
	broken   []string

	wantMessages, wantInboxes int
	enough                    chan struct{} // closed when there are so many
}

func newLedger() *ledger { return &ledger{subjects: map[string]bool{}, inboxes: map[string]bool{}} }

// load returns a channel that is closed after n more promises at each door.
func (l *ledger) load(n int) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wantMessages, l.wantInboxes, l.enough = len(l.subjects)+n, len(l.inboxes)+n, make(chan struct{})
	return l.enough
}

func (l *ledger) promised(of map[string]bool, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of[what] = true
	if l.enough != nil && len(l.subjects) >= l.wantMessages && len(l.inboxes) >= l.wantInboxes {
		close(l.enough)
		l.enough = nil
	}
}

func (l *ledger) broke(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = append(l.broken, fmt.Sprintf(format, args...))
}

// TestSIGTERMUnderLoad ends the service while clients send mail and make calls
// as fast as they can (C10): nothing that was begun may break off, and what was
// promised must be there after the next start.
func TestSIGTERMUnderLoad(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, data string, env []string) {
		const key = "the-key-of-the-load-test"
		env = append(env, "POSTROOM_RATE_LIMITS=off", "POSTROOM_LOG_LEVEL=warn", "POSTROOM_BOOTSTRAP_KEY="+key)
		l := newLedger()
		for round := range 3 {
			s := serve(t, data, env...)
			if round == 0 {
				s.call(t, key, http.MethodPost, "/v1/inboxes", `{"name":"load"}`)
			}
			enough := l.load(50)
			var clients sync.WaitGroup
			for i := range 4 {
				clients.Go(func() { mailUntilRefused(l, s.smtp, fmt.Sprintf("round %d, client %d", round, i)) })
				clients.Go(func() { callUntilRefused(l, s.api, key, fmt.Sprintf("r%dc%d", round, i)) })
			}
			select {
			case <-enough:
			case <-time.After(patience):
				t.Errorf("round %d: nothing was sent", round)
			}
			s.stop(t)
			clients.Wait()
		}
		for _, b := range l.broken {
			t.Error(b)
		}
		s := serve(t, data, env...)
		l.compare(t, "messages", l.subjects, listAll(t, s, key, "/v1/messages", "subject"))
		l.compare(t, "inboxes", l.inboxes, listAll(t, s, key, "/v1/inboxes", "name"))
		t.Logf("found all %d messages and %d inboxes", len(l.subjects), len(l.inboxes))
	})
}

func (l *ledger) compare(t *testing.T, what string, promised map[string]bool, found map[string]int) {
	t.Helper()
	for name := range promised {
		if found[name] != 1 {
			t.Errorf("%s: %q was promised and is there %d times", what, name, found[name])
		}
	}
}

// listAll counts the values of a field in all pages of a list.
func listAll(t *testing.T, s *served, key, path, field string) map[string]int {
	t.Helper()
	found := map[string]int{}
	for cursor := ""; ; {
		_, out := s.call(t, key, http.MethodGet, path+"?limit=100&cursor="+url.QueryEscape(cursor), "")
		rows, ok := out["data"].([]any)
		if !ok {
			t.Fatalf("%s: %v", path, out)
		}
		for _, r := range rows {
			if row, ok := r.(map[string]any); ok {
				found[fmt.Sprint(row[field])]++
			}
		}
		if more, _ := out["has_more"].(bool); !more {
			return found
		}
		cursor = fmt.Sprint(out["cursor"])
	}
}

// mailUntilRefused sends messages on one connection until the server stops
// accepting them. Every message that was sent completely must get a reply.
func mailUntilRefused(l *ledger, addr, name string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		l.broke("%s: %v", name, err)
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	c := textproto.NewConn(conn)
	if _, _, err := c.ReadResponse(220); err != nil {
		l.broke("%s: greeting: %v", name, err)
		return
	}
	for _, hello := range []string{"EHLO test"} {
		if refused, err := command250(c, hello); refused || err != nil {
			l.broke("%s: %s: %v", name, hello, err)
			return
		}
	}
	for n := 0; ; n++ {
		subject := fmt.Sprintf("%s, mail %d", name, n)
		for _, line := range []string{"MAIL FROM:<a@example.org>", "RCPT TO:<load@postroom.localhost>", "DATA"} {
			if refused, err := command250(c, line); err != nil {
				l.broke("%s: %s: %v", subject, line, err)
				return
			} else if refused {
				return
			}
		}
		mail := "From: a@example.org\r\nSubject: " + subject + "\r\n\r\n" + strings.Repeat("Text of some length.\r\n", 100) + "."
		if refused, err := command250(c, mail); refused || err != nil {
			l.broke("%s: sent completely, got %v", subject, err)
			return
		}
		l.promised(l.subjects, subject)
	}
}

// command250 sends a line and reports whether it was refused with 421, after
// which there is no more to say, or the connection was closed instead.
func command250(c *textproto.Conn, line string) (refused bool, err error) {
	sent := c.PrintfLine("%s", line)
	code, _, err := c.ReadResponse(0)
	switch {
	case err == nil && (code/100 == 2 || code == 354):
		return false, nil
	case code == 421:
		return true, nil
	}
	return false, errors.Join(sent, err)
}

// callUntilRefused creates inboxes until the server stops accepting connections.
// Every request that was sent must get a response.
func callUntilRefused(l *ledger, api, key, name string) {
	host := strings.TrimPrefix(api, "http://")
	for n := 0; ; {
		conn, err := net.Dial("tcp", host)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return
		}
		if err != nil {
			l.broke("%s: %v", name, err)
			return
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		r := bufio.NewReader(conn)
		for open := true; open; n++ {
			inbox := fmt.Sprintf("%sn%d", name, n)
			open, err = createOver(conn, r, key, inbox)
			if err != nil {
				// A connection that only the kernel accepted does not count.
				if n > 0 || !errors.Is(err, syscall.ECONNRESET) {
					l.broke("inbox %s: %v", inbox, err)
				}
				_ = conn.Close()
				return
			}
			l.promised(l.inboxes, inbox)
		}
		_ = conn.Close()
	}
}

// createOver makes an inbox over a connection, and reports whether the connection
// stays open.
func createOver(conn net.Conn, r *bufio.Reader, key, inbox string) (open bool, err error) {
	body := `{"name":"` + inbox + `"}`
	request := fmt.Sprintf("POST /v1/inboxes HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, len(body), body)
	if _, err := io.WriteString(conn, request); err != nil {
		return false, err
	}
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		return false, err
	}
	response, err := io.ReadAll(res.Body)
	if err != nil {
		return false, err
	}
	exchanges.Exchanged(request, res, response)
	if res.StatusCode != http.StatusCreated {
		return false, fmt.Errorf("%s: %s", res.Status, response)
	}
	return !res.Close, nil
}
