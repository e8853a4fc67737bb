package httpserver

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestRequestsThatNetHTTPRefuses shows that no handler sees a request whose head is not
// valid or too large. Rows H6 and H20 of docs/testing.md.
func TestRequestsThatNetHTTPRefuses(t *testing.T) {
	t.Parallel()
	const post = "POST / HTTP/1.1\r\nHost: test\r\n"
	d := serveHTTP(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	for name, tt := range map[string]struct {
		sent   string
		status int
	}{
		"40 KB of headers":          {"GET / HTTP/1.1\r\nHost: test\r\nX-Large: " + strings.Repeat("a", 40<<10) + "\r\n\r\n", 431},
		"10,000 headers":            {"GET / HTTP/1.1\r\nHost: test\r\n" + strings.Repeat("X-Many: a\r\n", 10_000) + "\r\n", 431},
		"a long path":               {"GET /" + strings.Repeat("a", 40<<10) + " HTTP/1.1\r\nHost: test\r\n\r\n", 431},
		"not HTTP":                  {"hello\r\n\r\n", 400},
		"no host":                   {"GET / HTTP/1.1\r\n\r\n", 400},
		"two hosts":                 {"GET / HTTP/1.1\r\nHost: test\r\nHost: other\r\n\r\n", 400},
		"a space before the colon":  {post + "Content-Length : 1\r\n\r\nx", 400},
		"two lengths":               {post + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", 400},
		"a list of lengths":         {post + "Content-Length: 1, 2\r\n\r\nxx", 400},
		"a length with a sign":      {post + "Content-Length: +1\r\n\r\nx", 400},
		"two codings":               {post + "Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
		"chunked twice":             {post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
		"a control character":       {post + "Transfer-Encoding: \x0bchunked\r\n\r\n", 400},
		"a size that is not a size": {post + "Transfer-Encoding: chunked\r\n\r\n0x1\r\nx\r\n0\r\n\r\n", 400},
		"a chunk that is too long":  {post + "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n", 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := d.dial(t)
			_, _ = io.WriteString(c, tt.sent) // may be refused before its end
			_ = c.Flush()                     // as above
			if res := receive(t, c); res.StatusCode != tt.status || !res.Close {
				t.Errorf("status %d, connection closed %t; want %d", res.StatusCode, res.Close, tt.status)
			}
		})
	}
}

// TestNothingIsSmuggled sends requests whose end is ambiguous, and behind each the request
// that a proxy may take for its body. Row H20 of docs/testing.md.
func TestNothingIsSmuggled(t *testing.T) {
	t.Parallel()
	const next = "GET /smuggled HTTP/1.1\r\nHost: test\r\n\r\n"
	lengths := fmt.Sprintf("Content-Length: %d\r\n", len("0\r\n\r\n"+next))
	for name, sent := range map[string]string{
		"both":                    "POST / HTTP/1.1\r\nHost: test\r\n" + lengths + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next,
		"both, in another order":  "POST / HTTP/1.1\r\nHost: test\r\ntransfer-encoding: CHUNKED\r\n" + lengths + "\r\n0\r\n\r\n" + next,
		"both, bare line feeds":   "POST / HTTP/1.1\nHost: test\n" + lengths + "Transfer-Encoding: chunked\n\n0\n\n" + next,
		"HTTP/1.0, chunked":       "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + next,
		"HTTP/1.0, with a length": "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1" + next,
		"after a usual request":   "GET /usual HTTP/1.1\r\nHost: test\r\n\r\nPOST / HTTP/1.1\r\nHost: test\r\n" + lengths + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan string, 3)
			c := serveHTTP(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.URL.Path },
				func(s *http.Server) { s.IdleTimeout = time.Second }).dial(t)
			_, _ = io.WriteString(c, sent) // may be refused before its end
			_ = c.Flush()                  // as above
			_, _ = io.Copy(io.Discard, c)  // until the server closes the connection
			for len(seen) > 0 {
				if path := <-seen; path == "/smuggled" {
					t.Error("the handler got the request behind an ambiguous one")
				}
			}
		})
	}
}

// Connections on which no request arrives in time are closed.
func TestSlowHeadsAndIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	handled := func(http.ResponseWriter, *http.Request) {}
	begun := serveHTTP(t, handled, func(s *http.Server) { s.ReadHeaderTimeout = 50 * time.Millisecond }).dial(t)
	_, _ = io.WriteString(begun, "GET / HTTP/1.1\r\nHost: te")
	must(t, begun.Flush())
	used := serveHTTP(t, handled, func(s *http.Server) { s.IdleTimeout = 50 * time.Millisecond }).dial(t)
	send(t, used, "/")
	receive(t, used)
	for _, c := range []*bufio.ReadWriter{begun, used} {
		if rest, err := io.ReadAll(c); err != nil || len(rest) > 0 {
			t.Errorf("read %q: %v", rest, err)
		}
	}
}

// H6: many connections that send nothing, or part of a head, neither block other clients
// nor slow them down measurably.
func TestIdleConnectionsDoNotSlowOthers(t *testing.T) {
	t.Parallel()
	const idle, calls = 1000, 100
	d := serveHTTP(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "handled") })
	alone := d.usual(t, calls)
	for i := range idle {
		c := d.dial(t)
		if i%2 == 0 {
			_, _ = fmt.Fprint(c, "GET / HTTP/1.1\r\nHo")
			must(t, c.Flush())
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
