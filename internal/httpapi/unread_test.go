package httpapi

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/httpserver"
	"github.com/postroom/postroom/internal/waittest"
)

// Many clients ask for a large response and read nothing. Those above the limit of memory
// lose the connection soon, the others later. A client that begins to read meanwhile gets
// all of it.
func TestUnreadResponsesAreBounded(t *testing.T) {
	t.Parallel()
	const size, clients = 16 << 20, 40 // larger than the buffers of the system
	const most = 10 * size
	content := make([]byte, size)
	log := slog.New(slog.DiscardHandler)
	chain := New(Config{Now: time.Now, Log: log})
	chain.unread = &unread{most: most, usual: 4 * time.Second, hurried: 200 * time.Millisecond}
	handler := chain.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.New(handler, httpserver.NewConns(httpserver.Limits{}, log), nil, log)
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
	late := ask()
	waittest.Until(t, "the first response is sent", func() bool { return chain.unread.bytes.Load() == size })
	for range clients {
		ask()
	}
	waittest.Until(t, "the responses are sent", func() bool { return chain.unread.bytes.Load() > most })
	began := time.Now()
	waittest.Until(t, "those above the limit are ended", func() bool { return chain.unread.bytes.Load() <= most })
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("those above the limit were ended after %v", took)
	}
	res, err := http.ReadResponse(bufio.NewReader(late), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n != size {
		t.Errorf("a client that reads got %d bytes: %v", n, err)
	}
	waittest.Until(t, "all are ended", func() bool { return chain.unread.bytes.Load() == 0 })
}
