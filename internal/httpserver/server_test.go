package httpserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// door is a Server that serves, and what its Serve returned.
type door struct {
	*Server
	l      net.Listener
	served chan error
}

// serveHTTP serves h on loopback, with the edits to the server's settings.
func serveHTTP(t *testing.T, h http.HandlerFunc, edits ...func(*http.Server)) *door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	d := &door{New(h, NewConns(Limits{}, log), nil, log), l, make(chan error, 1)}
	for _, edit := range edits {
		edit(d.server)
	}
	go func() { d.served <- d.Serve(l) }()
	return d
}

// dial opens a connection; ask sends a request on it and returns the response.
func (d *door) dial(t *testing.T) *bufio.ReadWriter {
	t.Helper()
	c, err := net.Dial("tcp", d.l.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
}

func send(t *testing.T, c *bufio.ReadWriter, path string) {
	t.Helper()
	_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: test\r\n\r\n", path)
	must(t, c.Flush())
}

func receive(t *testing.T, c *bufio.ReadWriter) *http.Response {
	t.Helper()
	res, err := http.ReadResponse(c.Reader, nil)
	must(t, err)
	must(t, res.Body.Close())
	return res
}

func (d *door) shutdown(t *testing.T) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- d.Shutdown(context.Background(), d.l) }()
	// The listener is closed before anything else is waited for.
	if err := <-d.served; err != nil {
		t.Errorf("Serve = %v, want nil", err)
	}
	return done
}

func TestShutdownFinishesRequestsInFlight(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	d := serveHTTP(t, func(http.ResponseWriter, *http.Request) { close(entered); <-leave })
	d.grace = 0
	c := d.dial(t)
	send(t, c, "/slow")
	<-entered
	done := d.shutdown(t)

	if _, err := net.Dial("tcp", d.l.Addr().String()); err == nil {
		t.Error("a new connection was accepted")
	}
	close(leave)
	if res := receive(t, c); res.StatusCode != http.StatusOK {
		t.Errorf("status %d", res.StatusCode)
	}
	if err := <-done; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
}

func TestShutdownServesARequestThatIsOnItsWay(t *testing.T) {
	t.Parallel()
	d := serveHTTP(t, func(http.ResponseWriter, *http.Request) {})
	d.grace = time.Minute
	kept, other := d.dial(t), d.dial(t)
	for _, c := range []*bufio.ReadWriter{kept, other} {
		send(t, c, "/first")
		if res := receive(t, c); res.Close {
			t.Fatal("the connection was not kept")
		}
	}
	done := d.shutdown(t)

	// http.Server.Shutdown would have closed these by now.
	for _, c := range []*bufio.ReadWriter{kept, other} {
		send(t, c, "/second")
		if res := receive(t, c); res.StatusCode != http.StatusOK || !res.Close {
			t.Errorf("status %d, close %t: want 200 and Connection: close", res.StatusCode, res.Close)
		}
	}
	// The grace is over with the last connection, not with the minute.
	if err := <-done; err != nil {
		t.Errorf("Shutdown = %v", err)
	}
}

func TestShutdownCancelsSlowRequests(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	d := serveHTTP(t, func(_ http.ResponseWriter, r *http.Request) { close(entered); <-r.Context().Done() })
	send(t, d.dial(t), "/forever")
	<-entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := d.Shutdown(ctx, d.l)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("Shutdown = %v", err)
	}
}

func TestServeReportsAListenerThatFails(t *testing.T) {
	t.Parallel()
	d := serveHTTP(t, func(http.ResponseWriter, *http.Request) {})
	must(t, d.l.Close())
	if err := <-d.served; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve = %v, want the listener's error", err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
