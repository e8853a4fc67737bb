package httpserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
)

// H6: requests that net/http rejects before a handler runs get JSON errors and do
// not delay others.
func TestHeadsThatAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		head   string
		status int
		code   string
	}{
		"40 KB of headers":          {"GET / HTTP/1.1\r\nHost: test\r\nX-Large: " + strings.Repeat("a", 40<<10) + "\r\n\r\n", 431, gen.ErrorCodeHeadersTooLarge},
		"10,000 headers":            {"GET / HTTP/1.1\r\nHost: test\r\n" + strings.Repeat("X-Many: a\r\n", 10_000) + "\r\n", 431, gen.ErrorCodeHeadersTooLarge},
		"a long path":               {"GET /" + strings.Repeat("a", 40<<10) + " HTTP/1.1\r\nHost: test\r\n\r\n", 431, gen.ErrorCodeHeadersTooLarge},
		"no HTTP":                   {"hello\r\n\r\n", 400, gen.ErrorCodeInvalidRequest},
		"no host":                   {"GET / HTTP/1.1\r\n\r\n", 400, gen.ErrorCodeInvalidRequest},
		"two lengths":               {"POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, gen.ErrorCodeInvalidRequest},
		"a head that does not end":  {"GET / HTTP/1.1\r\nHost: te", 408, gen.ErrorCodeRequestTimeout},
		"an unknown way of packing": {"POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501, gen.ErrorCodeInvalidRequest},
	}
	handled := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "handled") }
	patient := serveHTTP(t, handled)
	hasty := serveHTTP(t, handled, func(s *http.Server) { s.ReadHeaderTimeout = time.Second })
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := patient
			if tt.status == http.StatusRequestTimeout {
				d = hasty
			}
			c := d.dial(t)
			_, _ = io.WriteString(c, tt.head) // may be refused before its end
			_ = c.Flush()                     // as above
			res, err := http.ReadResponse(c.Reader, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			var e gen.Error
			if err := json.NewDecoder(res.Body).Decode(&e); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != tt.status || e.Error.Code != tt.code || e.Error.Message == "" || res.Header.Get("X-Request-Id") != e.Error.RequestID ||
				!res.Close || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
				t.Errorf("got %d %v %+v", res.StatusCode, res.Header, e.Error)
			}
		})
	}
}

// The content of a response is never replaced, even if it is a message that
// repeats the words of net/http.
func TestResponsesThatLookLikeRefusalsStay(t *testing.T) {
	t.Parallel()
	mail := "Subject: a" + string(plainError) + "400 Bad Request"
	c := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, mail) }).dial(t)
	send(t, c, "/")
	res, err := http.ReadResponse(c.Reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || string(body) != mail {
		t.Errorf("got %d %q, %v; want the message", res.StatusCode, body, err)
	}
}

// An idle connection is closed without a response: the client would take a 408
// for the response to its next request.
func TestIdleConnectionsAreClosedInSilence(t *testing.T) {
	t.Parallel()
	handled := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "handled") }
	fresh := serveHTTP(t, handled, func(s *http.Server) { s.ReadHeaderTimeout = 50 * time.Millisecond }).dial(t)
	used := serveHTTP(t, handled, func(s *http.Server) { s.IdleTimeout = 50 * time.Millisecond }).dial(t)
	send(t, used, "/")
	if res := receive(t, used); res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
	for _, c := range []*bufio.ReadWriter{fresh, used} {
		if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 && string(rest) != "handled" {
			t.Errorf("read %q: %v", rest, err)
		}
	}
}

// H6: many connections that send nothing, or one byte at a time, neither block
// other clients nor slow them down measurably.
func TestIdleConnectionsDoNotSlowOthers(t *testing.T) {
	t.Parallel()
	const idle, calls = 1000, 100
	d := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "handled") })
	alone := d.usual(t, calls)
	for i := range idle {
		c := d.dial(t)
		if i%2 == 0 {
			_, _ = fmt.Fprint(c, "GET / HTTP/1.1\r\nHo")
			if err := c.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	crowded := d.usual(t, calls)
	t.Logf("the median of %d calls is %v alone, and %v beside %d connections", calls, alone, crowded, idle)
	if crowded > 200*time.Millisecond+20*alone {
		t.Errorf("beside %d connections a call takes %v, alone %v", idle, crowded, alone)
	}
}

// usual makes calls, and returns the median of how long they took.
func (d *door) usual(t *testing.T, calls int) time.Duration {
	t.Helper()
	took := make([]time.Duration, calls)
	for i := range took {
		began := time.Now()
		c := d.dial(t)
		send(t, c, "/")
		receive(t, c)
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[calls/2]
}
