package httpapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/ogen-go/ogen/middleware"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpserver"
)

// Clients of one account ask for responses and read nothing. They hold no more memory than
// the share of an account, and a client of another account gets its response at once.
func TestUnreadResponsesAreBounded(t *testing.T) {
	t.Parallel()
	const size = 16 << 20 // larger than the buffers of the system
	content, log := make([]byte, size), slog.New(slog.DiscardHandler)
	chain := New(Config{Now: time.Now, Log: log})
	begun := make(chan struct{}, 3*maxContents)
	handler := chain.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		infoOf(r.Context()).AccountID, _ = strconv.ParseInt(r.URL.Path[1:], 10, 64)
		req := middleware.Request{Context: r.Context(), OperationName: gen.GetMessageOperation}
		_, err := chain.limitContents(req, func(middleware.Request) (middleware.Response, error) { return middleware.Response{}, nil })
		if err == nil {
			begun <- struct{}{}
			_, _ = w.Write(content) // the client may not read it
		}
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.New(handler, httpserver.NewConns(httpserver.Limits{}, log), nil, log)
	go func() { _ = s.Serve(l) }()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	t.Cleanup(func() { _ = s.Shutdown(ctx, l) })
	ask := func(account int) net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprintf(c, "GET /%d HTTP/1.1\r\nHost: test\r\n\r\n", account); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 2 * maxContents {
		ask(1)
	}
	for range maxShare {
		<-begun
	}
	res, err := http.ReadResponse(bufio.NewReader(ask(2)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n != size {
		t.Errorf("a client of another account got %d bytes: %v", n, err)
	}
	<-begun
	if n := len(begun); n > 0 {
		t.Errorf("%d responses more than the share of an account were in memory", n)
	}
}
