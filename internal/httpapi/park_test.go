package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/httpserver"
)

// A parked request keeps neither its http.Request nor what that refers to: its buffers
// take more than ten times the memory of all else.
func TestAParkedRequestIsFreed(t *testing.T) {
	t.Parallel()
	chain := New(Config{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	parked, freed, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	handler := chain.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		info := infoOf(r.Context())
		runtime.AddCleanup(info, func(struct{}) { close(freed) }, struct{}{})
		_ = Park(r.Context(), Pause{Left: time.Hour, OnWake: func(func()) { close(parked) }, Ended: func() { close(ended) }})
	}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	s := httpserver.New(handler, httpserver.NewConns(httpserver.Limits{}, log), nil, log)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Shutdown(context.Background(), l) })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: test\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	<-parked
	for range 1000 { // the handler may still be returning
		runtime.GC()
		select {
		case <-freed:
			_ = c.Close()
			<-ended
			return
		default:
		}
	}
	t.Fatal("the request is still in memory")
}
