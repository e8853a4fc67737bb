package faults_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/waittest"
)

// slowCalls are the kinds of slow calls: what the client sends at once, how long it may then
// send a byte a second, and the status it gets. Zero means that the connection is closed.
var slowCalls = []struct {
	say    string
	may    time.Duration
	status int
}{
	{"", 10 * time.Second, 0},
	{"GET /v1/inboxes HTTP/1.1\r\nHost: faults\r\nX-Slow: ", 10 * time.Second, 0},
	{"POST /v1/inboxes HTTP/1.1\r\nHost: faults\r\nAuthorization: Bearer " + firstKey +
		"\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n{\"display_name\":\"", 30 * time.Second, http.StatusRequestTimeout},
	{"POST /v1/inboxes HTTP/1.1\r\nHost: faults\r\nAuthorization: Bearer " + firstKey +
		"\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n2000\r\n", 30 * time.Second, http.StatusRequestTimeout},
}

// TestHonestCallersGetThroughSlowOnes opens many connections to the API that send
// nothing, or headers and bodies at a byte a second. Honest calls beside them get
// responses. The full form waits until the slow calls have ended. Row H6 of
// docs/testing.md.
func TestHonestCallersGetThroughSlowOnes(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, "sqlite")
	n := in.start()
	ctx, done := context.WithCancel(t.Context())
	s := &slowCallers{api: strings.TrimPrefix(n.api, "http://"), ended: map[int][]slowEnd{}}
	s.begin(ctx, t, pick(400, 10_000))
	took := honestCalls(ctx, t, n, pick(50, 600))
	if full {
		s.wantTimeouts(t)
		took = append(took, honestCalls(ctx, t, n, 300)...)
	}
	done()
	s.all.Wait()
	slices.Sort(took)
	t.Logf("%d slow callers; %d honest calls: p50 %s, p99 %s, longest %s", s.count, len(took), seconds(at(took, 50)), seconds(at(took, 99)), seconds(at(took, 100)))
	if full && at(took, 99) > 200*time.Millisecond {
		t.Errorf("p99 of honest calls is %v", at(took, 99))
	}
}

// honestCalls makes calls, one after the other, and returns how long they took.
func honestCalls(ctx context.Context, t *testing.T, n *node, calls int) []time.Duration {
	t.Helper()
	took := make([]time.Duration, 0, calls)
	for range calls {
		c := n.caller() // its own connection, because the server may run out of them
		began := time.Now()
		if err := c.call(ctx, http.StatusOK, nil, http.MethodGet, "/v1/inboxes", nil); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		c.close()
	}
	return took
}

// slowEnd is the outcome of a slow call.
type slowEnd struct {
	status int // 0: closed without a response
	after  time.Duration
}

// slowCallers are clients that send slowly.
type slowCallers struct {
	api   string
	count int
	all   sync.WaitGroup

	mu    sync.Mutex
	ended map[int][]slowEnd // by kind, before the end of the test
}

// begin connects all clients. Their kinds take turns.
func (s *slowCallers) begin(ctx context.Context, t *testing.T, count int) {
	t.Helper()
	s.count = count
	for i := range count {
		conn, err := dialFrom(ctx, nil, s.api)
		if err != nil {
			t.Fatal(err)
		}
		s.all.Go(func() { s.dawdle(ctx, conn, i%len(slowCalls)) })
	}
}

// dawdle makes one call as slowly as it can, until it gets a response or ctx ends.
func (s *slowCallers) dawdle(ctx context.Context, conn net.Conn, kind int) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	began := time.Now()
	statuses := make(chan int, 1)
	go func() {
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			statuses <- 0
			return
		}
		_ = res.Body.Close() // only the status matters
		statuses <- res.StatusCode
	}()
	_, _ = io.WriteString(conn, slowCalls[kind].say) // if it fails, so does ReadResponse
	drip := time.NewTicker(time.Second)
	defer drip.Stop()
	for {
		select {
		case status := <-statuses:
			if ctx.Err() == nil {
				s.note(kind, slowEnd{status, time.Since(began)})
			}
			return
		case <-drip.C:
			if slowCalls[kind].say != "" {
				_, _ = conn.Write([]byte("x")) // as for WriteString above
			}
		}
	}
}

func (s *slowCallers) note(kind int, end slowEnd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[kind] = append(s.ended[kind], end)
}

// wantTimeouts waits until all slow calls, except the silent ones, end in time.
func (s *slowCallers) wantTimeouts(t *testing.T) {
	t.Helper()
	for kind, call := range slowCalls[1:] {
		kind++
		var ends []slowEnd
		waittest.Until(t, "the slow calls end", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			ends = s.ended[kind]
			return len(ends) == s.count/len(slowCalls)
		})
		longest := time.Duration(0)
		for _, end := range ends {
			if end.status != call.status {
				t.Errorf("kind %d: got %d after %v, want %d", kind, end.status, end.after, call.status)
			}
			longest = max(longest, end.after)
		}
		t.Logf("kind %d: %d ended, the last after %s", kind, len(ends), seconds(longest))
		if longest > call.may+5*time.Second {
			t.Errorf("kind %d: ended after %v, want %v", kind, longest, call.may)
		}
	}
}
