// Package httpserver runs net/http servers: it sends every error as JSON, refuses
// requests whose end is ambiguous, and loses no request on shutdown.
package httpserver

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

// drainGrace is how long an idle connection stays open for one more request after
// shutdown has begun.
const drainGrace = time.Second

// Server is an http.Server that loses no requests on shutdown.
// http.Server.Shutdown closes idle connections at once, so that a request sent at
// that moment fails. Here, every response first announces that the connection
// closes.
type Server struct {
	server   *http.Server
	grace    time.Duration
	draining atomic.Bool
	conns    openConns
	limited  *Conns
	parked   parkedConns
	again    *againListener // of connections that were parked
}

// New serves h, with TLS if cfg is not nil, within the limits of conns. The handler sets
// the deadlines for bodies and responses, because they depend on the request.
func New(h http.Handler, conns *Conns, cfg *tls.Config, log *slog.Logger) *Server {
	s := &Server{grace: drainGrace, limited: conns, again: newAgainListener()}
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
		ErrorLog:          newLog(log),
		ConnState:         s.change,
		ConnContext:       withConn,
		TLSConfig:         cfg,
	}
	conns.follow(s.server)
	return s
}

// change implements http.Server.ConnState.
func (s *Server) change(c net.Conn, state http.ConnState) {
	if c, ok := c.(*errorConn); ok {
		c.change(state)
	}
	s.conns.change(state)
}

// Serve accepts connections until Shutdown, then returns nil.
func (s *Server) Serve(l net.Listener) error {
	var err error
	l = limitedListener{l, s.limited}
	if s.server.TLSConfig != nil {
		err = s.server.ServeTLS(l, "", "")
	} else {
		s.again.addr = l.Addr()
		var resuming sync.WaitGroup
		resuming.Go(func() { _ = s.server.Serve(s.again) }) // until the listener closes
		err = s.server.Serve(errorListener{l, s})
		_ = s.again.Close() // never fails
		resuming.Wait()
	}
	if errors.Is(err, http.ErrServerClosed) || s.draining.Load() && errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("accept HTTP connections: %w", err)
}

// Shutdown closes l and waits for running requests. If ctx ends first, it aborts
// them and returns its error.
func (s *Server) Shutdown(ctx context.Context, l net.Listener) error {
	s.draining.Store(true)
	err := l.Close()
	s.parked.stop()
	grace := time.NewTimer(s.grace)
	defer grace.Stop()
	select {
	case <-s.conns.gone():
	case <-grace.C:
	case <-ctx.Done():
	}
	// The server also closes the listener; ignore the second close.
	if down := s.server.Shutdown(ctx); down != nil && !errors.Is(down, net.ErrClosed) {
		err = errors.Join(err, fmt.Errorf("requests were interrupted: %w", down), s.server.Close())
	}
	return err
}

// openConns counts open connections.
type openConns struct {
	mu   sync.Mutex
	n    int
	none []chan struct{} // closed when n reaches 0
}

// change records a connection's new state.
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

// gone returns a channel that is closed when no connections are open.
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
