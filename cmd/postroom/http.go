package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// drainGrace is how long a connection that is kept open may bring one more
// request after shutdown began.
const drainGrace = time.Second

// httpServer is an http.Server that shuts down without breaking a request that
// is on its way: http.Server.Shutdown closes idle connections at once, and a
// request that its client sends at that moment is lost. Here every answer says
// first that the connection closes after it.
type httpServer struct {
	server   *http.Server
	grace    time.Duration
	draining atomic.Bool
	conns    openConns
}

// newHTTPServer serves h, by HTTPS when cfg is not nil. The times that a body and an answer may take differ
// by request, and are the handler's to set.
func newHTTPServer(h http.Handler, cfg *tls.Config, log *slog.Logger) *httpServer {
	s := &httpServer{grace: drainGrace}
	s.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.draining.Load() {
				w.Header().Set("Connection", "close")
			}
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          newHTTPLog(log),
		ConnState:         s.change,
		TLSConfig:         cfg,
	}
	return s
}

// change is for http.Server.ConnState.
func (s *httpServer) change(c net.Conn, state http.ConnState) {
	if c, ok := c.(*errorConn); ok {
		c.change(state)
	}
	s.conns.change(state)
}

// Serve accepts connections until Shutdown, after which it returns nil.
func (s *httpServer) Serve(l net.Listener) error {
	var err error
	if s.server.TLSConfig != nil {
		err = s.server.ServeTLS(l, "", "")
	} else {
		err = s.server.Serve(errorListener{l})
	}
	if errors.Is(err, http.ErrServerClosed) || s.draining.Load() && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("accept HTTP connections: %w", err)
}

// Shutdown lets the requests that are running finish; l, which it serves, is
// closed first. When ctx ends before that, it breaks them off and returns its
// error.
func (s *httpServer) Shutdown(ctx context.Context, l net.Listener) error {
	s.draining.Store(true)
	err := l.Close()
	grace := time.NewTimer(s.grace)
	defer grace.Stop()
	select {
	case <-s.conns.gone():
	case <-grace.C:
	case <-ctx.Done():
	}
	// The server closes the listener too, and may find that out.
	if down := s.server.Shutdown(ctx); down != nil && !errors.Is(down, net.ErrClosed) {
		err = errors.Join(err, fmt.Errorf("requests were interrupted: %w", down), s.server.Close())
	}
	return err
}

// openConns knows when all connections are closed.
type openConns struct {
	mu   sync.Mutex
	n    int
	none []chan struct{} // to be closed when n is 0
}

// change notes what became of one.
func (o *openConns) change(state http.ConnState) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch state {
	case http.StateNew:
		o.n++
	case http.StateClosed, http.StateHijacked:
		o.n--
	case http.StateActive, http.StateIdle:
	}
	if o.n == 0 {
		for _, c := range o.none {
			close(c)
		}
		o.none = nil
	}
}

// gone returns a channel that is closed once there is no connection.
func (o *openConns) gone() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := make(chan struct{})
	if o.n == 0 {
		close(c)
	} else {
		o.none = append(o.none, c)
	}
	return c
}
