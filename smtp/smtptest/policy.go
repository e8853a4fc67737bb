package smtptest

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// PolicyHost serves an MTA-STS policy over HTTPS on a free port of 127.0.0.1,
// under any host name.
type PolicyHost struct {
	port uint16

	mu      sync.Mutex
	handler http.HandlerFunc
	calls   int
}

// NewPolicyHost starts a host that serves the policy.
func NewPolicyHost(t testing.TB, cfg *tls.Config, policy string) *PolicyHost {
	t.Helper()
	h := &PolicyHost{}
	h.SetPolicy(policy)
	srv := httptest.NewUnstartedServer(h)
	srv.TLS = cfg.Clone()
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes
	srv.StartTLS()
	t.Cleanup(srv.Close)
	h.port = uint16(srv.Listener.Addr().(*net.TCPAddr).Port) //nolint:gosec // a port fits
	return h
}

func (h *PolicyHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.calls++
	handler := h.handler
	h.mu.Unlock()
	if r.URL.Path != "/.well-known/mta-sts.txt" {
		http.NotFound(w, r)
		return
	}
	handler(w, r)
}

// Port returns the listening port.
func (h *PolicyHost) Port() uint16 { return h.port }

// Calls returns the number of requests.
func (h *PolicyHost) Calls() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls
}

// Set replaces the handler.
func (h *PolicyHost) Set(handler http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.handler = handler
}

// SetPolicy replaces the policy.
func (h *PolicyHost) SetPolicy(policy string) {
	h.Set(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, policy) // the client may have disconnected
	})
}
