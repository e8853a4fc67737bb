// Package httpserver runs net/http servers within limits of connections. They lose no
// request on shutdown.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/postroom/postroom/internal/work"
)

// drainGrace is how long an idle connection stays open for one more request after
// shutdown has begun. drainPoll is how often Shutdown looks whether any is open.
const (
	drainGrace = time.Second
	drainPoll  = 5 * time.Millisecond
)

// Server is an http.Server that loses no requests on shutdown.
// http.Server.Shutdown closes idle connections at once, so that a request sent at
// that moment fails. Here, every response first announces that the connection
// closes.
type Server struct {
	server   *http.Server
	limited  *Conns
	grace    time.Duration
	draining atomic.Bool
	open     atomic.Int64 // connections
}

// New serves h, with TLS if cfg is not nil, within the limits of conns. The handler sets
// the deadlines for bodies and responses, because they depend on the request.
func New(h http.Handler, conns *Conns, cfg *tls.Config, log *slog.Logger) *Server {
	s := &Server{grace: drainGrace, limited: conns}
	s.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if s.draining.Load() || ambiguousEnd(r) {
				w.Header().Set("Connection", "close")
			}
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          newLog(log),
		ConnState:         s.count,
		TLSConfig:         cfg,
	}
	conns.follow(s.server)
	return s
}

// ambiguousEnd reports whether a proxy may see another end of the request. net/http
// ignores Content-Length beside Transfer-Encoding, and Transfer-Encoding in HTTP/1.0, and
// does not say so. What follows on the connection may be a part of the body, so the server
// must not read it as a request (RFC 9112 section 6.1).
func ambiguousEnd(r *http.Request) bool { return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) }

// count implements http.Server.ConnState.
func (s *Server) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.open.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.open.Add(-1)
	case http.StateActive, http.StateIdle:
	}
}

// Serve accepts connections until Shutdown, then returns nil.
func (s *Server) Serve(l net.Listener) error {
	var err error
	l = limitedListener{l, s.limited}
	if s.server.TLSConfig != nil {
		err = s.server.ServeTLS(l, "", "")
	} else {
		err = s.server.Serve(l)
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
	for end := time.Now().Add(s.grace); s.open.Load() > 0 && time.Now().Before(end) && work.Pause(ctx, drainPoll, nil); {
	}
	// The server also closes the listener; ignore the second close.
	if down := s.server.Shutdown(ctx); down != nil && !errors.Is(down, net.ErrClosed) {
		err = errors.Join(err, fmt.Errorf("requests were interrupted: %w", down), s.server.Close())
	}
	return err
}
