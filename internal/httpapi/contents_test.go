package httpapi

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ogen-go/ogen/middleware"
	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpserver"
)

// Clients ask for responses and read nothing. Those for which there is memory hold it until
// others need it: then they lose the connection, and each of the others gets its turn. A
// client that reads gets all.
func TestUnreadResponsesAreBounded(t *testing.T) {
	t.Parallel()
	const size, clients, room = 16 << 20, 16, 8 // larger than the buffers of the system
	content, log := make([]byte, size), slog.New(slog.DiscardHandler)
	conns := httpserver.NewConns(httpserver.Limits{}, log)
	chain := New(Config{Now: time.Now, Log: log, Hurry: conns.Hurry})
	chain.contents = semaphore.NewWeighted(room)
	var reading, most atomic.Int64
	handler := chain.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := middleware.Request{Context: r.Context(), OperationName: gen.GetMessageOperation}
		_, err := chain.limitContents(req, func(middleware.Request) (middleware.Response, error) {
			if n := reading.Add(1); n > most.Load() {
				most.Store(n)
			}
			return middleware.Response{}, nil
		})
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = w.Write(content) // the client may not read it
		reading.Add(-1)
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.New(handler, conns, nil, log)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Shutdown(context.Background(), l) })
	ask := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.(*net.TCPConn).SetReadBuffer(32 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range clients {
		ask()
	}
	res, err := http.ReadResponse(bufio.NewReader(ask()), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n != size {
		t.Errorf("a client that reads got %d bytes: %v", n, err)
	}
	// Requests that keep coming give the clients that do not read no more time.
	for range room {
		ask()
	}
	arriving, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	go func() {
		for arriving.Err() == nil {
			c, err := net.Dial("tcp", l.Addr().String())
			if err == nil {
				_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
				go func() { _, _ = io.Copy(io.Discard, c); _ = c.Close() }()
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	time.Sleep(100 * time.Millisecond)
	begun := time.Now()
	if _, err := http.ReadResponse(bufio.NewReader(ask()), nil); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("while requests kept coming, one waited %v", took)
	}
	stop()
	if n := most.Load(); n > room+2 { // a response that is written is still counted for a moment
		t.Errorf("%d responses were in memory at once", n)
	}
}
