package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/acmecert"
	"github.com/postroom/postroom/store"
)

// certificates is the source of a node's certificates. get is nil if there is
// none.
type certificates struct {
	get func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// run renews them; it may be nil.
	run func(context.Context) error
	// answer responds to ACME challenges before the handler runs; it may be nil.
	answer func(http.Handler) http.Handler
}

// certificates loads the certificate files or prepares ACME.
func (n *node) certificates(s *store.Store) (certificates, error) {
	switch {
	case n.cfg.TLSCert != "":
		c, err := openCertificate(n.cfg.TLSCert, n.cfg.TLSKey, n.now, n.log)
		if err != nil {
			return certificates{}, err
		}
		return certificates{get: c.get}, nil
	case len(n.cfg.ACMEHosts) > 0:
		m, err := acmecert.New(acmecert.Config{
			Store: s, Hosts: n.cfg.ACMEHosts, Directory: string(n.cfg.ACMEDirectory), Email: n.cfg.ACMEEmail,
			Alone: !n.cfg.Database.postgres(), Now: n.now, Log: n.log,
		})
		if err != nil {
			return certificates{}, err
		}
		return certificates{get: m.GetCertificate, run: m.Run, answer: m.HTTPHandler}, nil
	}
	return certificates{}, nil
}

// config returns the TLS configuration for these protocols, in order of
// preference.
func (c certificates) config(protos ...string) *tls.Config {
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12, NextProtos: protos}
}

// challenges returns a handler that responds to ACME challenges and passes all
// else to h.
func (c certificates) challenges(h http.Handler) http.Handler {
	if c.answer == nil {
		return h
	}
	return c.answer(h)
}

// leadToHTTPS returns the handler for plain HTTP on addr when base is served over
// HTTPS. A loopback address serves the API to local programs. Any other serves
// only the health check and redirects browsers to HTTPS; a request with a key
// gets an error that the key was sent unencrypted.
func leadToHTTPS(api http.Handler, addr net.Addr, base *url.URL) http.Handler {
	if ap, err := netip.ParseAddrPort(addr.String()); err == nil && ap.Addr().IsLoopback() {
		return api
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		switch {
		case reads && r.URL.Path == "/health":
			api.ServeHTTP(w, r)
		case reads && r.Header.Get("Authorization") == "":
			http.Redirect(w, r, base.Scheme+"://"+base.Host+r.URL.RequestURI(), http.StatusPermanentRedirect) //nolint:gosec // the host is that of the settings
		default:
			id := store.NewID("req_", time.Now())
			body, _ := json.Marshal(&gen.Error{Error: gen.ErrorBody{ // cannot fail for strings
				Code: gen.ErrorCodeInvalidRequest, RequestID: id,
				Message: "the API is at " + base.String() + ": a key that was sent here went over the network in clear",
			}})
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.Header().Set("X-Request-Id", id)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(body) // the client may have disconnected
		}
	})
}
