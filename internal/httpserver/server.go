// Package httpserver runs net/http servers within limits of connections. They lose no
// request on shutdown.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
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
}

// New serves h, with TLS if cfg is not nil, within the limits of conns. The handler sets
// the deadlines for bodies and responses, because they depend on the request.
func New(h http.Handler, conns *Conns, cfg *tls.Config, logger *slog.Logger) *Server {
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
		ErrorLog:          log.New(errorLog{logger}, "", 0),
		TLSConfig:         cfg,
	}
	return s
}

// errorLog logs the errors of net/http. Any port scanner causes failed TLS handshakes.
type errorLog struct{ log *slog.Logger }

func (l errorLog) Write(p []byte) (int, error) {
	text, level := strings.TrimSpace(string(p)), slog.LevelWarn
	if strings.HasPrefix(text, "http: TLS handshake error from ") {
		level = slog.LevelDebug
	}
	l.log.Log(context.Background(), level, "HTTP connection error", "error", text)
	return len(p), nil
}

// ambiguousEnd reports whether a proxy may see another end of the request. net/http
// ignores Content-Length beside Transfer-Encoding, and Transfer-Encoding in HTTP/1.0, and
// does not say so. What follows on the connection may be a part of the body, so the server
// must not read it as a request (RFC 9112 section 6.1).
func ambiguousEnd(r *http.Request) bool { return len(r.TransferEncoding) > 0 || !r.ProtoAtLeast(1, 1) }

// Serve accepts connections until Shutdown, then returns nil.
func (s *Server) Serve(l net.Listener) error {
	var err error
	l = s.limited.Limit(s.server, l)
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
	for end := time.Now().Add(s.grace); s.limited.anyOpen() && time.Now().Before(end) && work.Pause(ctx, drainPoll, nil); {
	}
	// The server also closes the listener; ignore the second close.
	if down := s.server.Shutdown(ctx); down != nil && !errors.Is(down, net.ErrClosed) {
		err = errors.Join(err, fmt.Errorf("requests were interrupted: %w", down), s.server.Close())
	}
	return err
}
