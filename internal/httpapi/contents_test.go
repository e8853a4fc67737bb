package httpapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/ogen-go/ogen/middleware"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpserver"
	"github.com/postroom/postroom/store"
)

// Clients of one account ask for responses and read nothing. They hold no more memory than
// the share of an account, and a client of another account gets its response at once.
func TestUnreadResponsesAreBounded(t *testing.T) {
	t.Parallel()
	read := func(chain *Chain, ctx context.Context, account int64) error {
		infoOf(ctx).AccountID = account
		req := middleware.Request{Context: ctx, OperationName: gen.GetMessageOperation}
		_, err := chain.limitContents(req, func(middleware.Request) (middleware.Response, error) { return middleware.Response{}, nil })
		return err
	}
	t.Run("of this API", func(t *testing.T) {
		t.Parallel()
		testUnreadResponses(t, read)
	})
	t.Run("of an API in front of it, which makes two calls", func(t *testing.T) {
		t.Parallel()
		testUnreadResponses(t, func(chain *Chain, ctx context.Context, account int64) (err error) {
			infoOf(ctx).AccountID = account
			ctx = asFront(ctx, store.Key{AccountID: account})
			inner := chain.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				err = errors.Join(err, read(chain, r.Context(), account))
			}))
			for range 2 {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/messages/msg_1", http.NoBody)
				inner.ServeHTTP(httptest.NewRecorder(), r)
			}
			return err
		})
	})
}

func testUnreadResponses(t *testing.T, read func(chain *Chain, ctx context.Context, account int64) error) {
	t.Helper()
	const size = 16 << 20 // larger than the buffers of the system
	content, log := make([]byte, size), slog.New(slog.DiscardHandler)
	chain := New(Config{Now: time.Now, Log: log})
	begun := make(chan struct{}, 3*maxContents)
	handler := chain.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		account, _ := strconv.ParseInt(r.URL.Path[1:], 10, 64)
		if read(chain, r.Context(), account) == nil {
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
