// Package acmecert obtains and renews the certificates of a node with ACME (RFC
// 8555). Certificates and pending orders are stored in the database: all nodes
// use the same certificates, and each can respond to the challenges of another
// node's order, over HTTP on port 80 (RFC 8555 section 8.3) or TLS on port 443
// (RFC 8737).
//
// Certificates are ordered at the start and when renewal is due, never because
// a client connects. Until there is one, clients get a self-signed certificate.
// Mail senders still encrypt with it (RFC 7435), but API clients reject it.
// Failed orders are retried with growing delays, because ACME servers limit
// failures.
package acmecert

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"

	"github.com/postroom/postroom/internal/work"
	"github.com/postroom/postroom/store"
)

const (
	// look is the interval at which a node checks for renewed certificates.
	look = 10 * time.Minute
	// orderTime is how long no other node places an order after one has
	// started. Let's Encrypt's limit on failures recovers in that time.
	// orderWait is the interval at which the other nodes check.
	orderTime = 12 * time.Minute
	orderWait = 5 * time.Second
)

// challengePath is the path of HTTP challenges (RFC 8555 section 8.3).
const challengePath = "/.well-known/acme-challenge/"

// errOther means that another node is ordering a certificate, or has just
// failed.
var errOther = errors.New("another node has asked for it")

// retries are the delays after failures; the last one repeats.
var retries = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// Config configures a Manager.
type Config struct {
	Store *store.Store
	// Hosts are the host names, each with a certificate of its own. Clients
	// that send no name or an unknown one get the certificate of the first.
	Hosts []string
	// Directory is the URL of the ACME server's directory. Email is the contact
	// address and may be empty.
	Directory, Email string
	// Alone reports that there is only one node.
	Alone bool
	// Client makes the requests to the ACME server; nil means
	// http.DefaultClient.
	Client *http.Client
	Now    func() time.Time
	Log    *slog.Logger
}

// Manager manages the certificates of a node.
type Manager struct {
	cfg     Config
	acme    *autocert.Manager
	unnamed *tls.Certificate // self-signed
	have    atomic.Pointer[map[string]*tls.Certificate]
}

// New returns a Manager without certificates from the ACME server.
func New(cfg Config) (*Manager, error) {
	unnamed, err := selfSigned(cfg.Hosts, cfg.Now())
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &Manager{cfg: cfg, unnamed: unnamed, acme: &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: cache{cfg.Store}, HostPolicy: autocert.HostWhitelist(cfg.Hosts...), Email: cfg.Email,
		Client: &acme.Client{DirectoryURL: cfg.Directory, HTTPClient: cfg.Client, UserAgent: "postroom"},
	}}, nil
}

// GetCertificate is for tls.Config.GetCertificate. To allow TLS challenges,
// NextProtos must contain acme.ALPNProto.
func (m *Manager) GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if slices.Equal(hello.SupportedProtos, []string{acme.ALPNProto}) {
		return m.acme.GetCertificate(hello)
	}
	have := m.have.Load()
	if have == nil {
		return m.unnamed, nil
	}
	if c := (*have)[strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))]; c != nil {
		return c, nil
	}
	if c := (*have)[m.cfg.Hosts[0]]; c != nil {
		return c, nil
	}
	return m.unnamed, nil
}

// HTTPHandler responds to HTTP challenges and passes other requests to next. Call
// it before Run.
func (m *Manager) HTTPHandler(next http.Handler) http.Handler {
	inner := m.acme.HTTPHandler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err == nil && strings.HasPrefix(r.URL.Path, challengePath) {
			r = r.WithContext(r.Context()) // a copy
			r.Host = host                  // without the port of a proxy
		}
		inner.ServeHTTP(w, r)
	})
}

// Run obtains and renews the certificates until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	failed := 0
	work.Due(ctx, func(ctx context.Context) time.Duration {
		pause := look
		err := m.RunOnce(ctx)
		switch {
		case err == nil:
			failed = 0
		case errors.Is(err, errOther):
			pause = orderWait
		default:
			pause = retries[min(failed, len(retries)-1)]
			failed++
			if ctx.Err() == nil {
				m.cfg.Log.WarnContext(ctx, "no certificate by ACME: see that its name leads here, on port 80 or 443", "error", err, "again_in", pause.String())
			}
		}
		return pause
	}, nil, nil)
	return nil
}

// RunOnce obtains missing certificates and loads those that this or another
// node has renewed.
func (m *Manager) RunOnce(ctx context.Context) error {
	have := map[string]*tls.Certificate{}
	var errs []error
	var other error // reported only if there is no other error
	for _, host := range m.cfg.Hosts {
		c, err := m.get(ctx, host)
		if errors.Is(err, errOther) {
			other = err
		} else if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", host, err))
		}
		if old := m.have.Load(); err != nil && old != nil {
			c = (*old)[host]
		}
		if c != nil {
			have[host] = c
		}
		m.tell(ctx, host, c)
	}
	m.have.Store(&have)
	if len(errs) == 0 {
		return other
	}
	return errors.Join(errs...)
}

// tell logs a new certificate.
func (m *Manager) tell(ctx context.Context, host string, c *tls.Certificate) {
	old := m.have.Load()
	if c == nil || old != nil && (*old)[host] != nil && c.Leaf.Equal((*old)[host].Leaf) {
		return
	}
	m.cfg.Log.InfoContext(ctx, "certificate in use", "host", host, "until", c.Leaf.NotAfter.UTC().Format(time.RFC3339))
}

// get returns the certificate of a host. If there is none, one of several nodes
// orders it; the others get errOther.
func (m *Manager) get(ctx context.Context, host string) (*tls.Certificate, error) {
	_, err := m.cfg.Store.Certificate(ctx, host)
	if errors.Is(err, store.ErrNotFound) && !m.cfg.Alone {
		mine, err := m.cfg.Store.ClaimCertificate(ctx, host, m.cfg.Now().Add(orderTime))
		if err != nil {
			return nil, err
		}
		if !mine {
			return nil, errOther
		}
	} else if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return m.order(ctx, host)
}

// order gets the certificate from autocert, which uses its memory, the database
// or the ACME server. It does so like a connecting client. The order itself
// continues after ctx ends.
func (m *Manager) order(ctx context.Context, host string) (*tls.Certificate, error) {
	type result struct {
		c   *tls.Certificate
		err error
	}
	done := make(chan result, 1)
	go func() {
		c, err := m.acme.GetCertificate(&tls.ClientHelloInfo{
			ServerName: host, SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
			SupportedCurves: []tls.CurveID{tls.CurveP256}, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256},
		})
		done <- result{c, err}
	}()
	select {
	case r := <-done:
		return r.c, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// selfSigned creates a self-signed certificate.
func selfSigned(hosts []string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	const life = 10 * 365 * 24 * time.Hour
	template := &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(life), DNSNames: hosts}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, err
}

// cache stores autocert's data in the database.
type cache struct{ store *store.Store }

// Get implements autocert.Cache.
func (c cache) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := c.store.Certificate(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, autocert.ErrCacheMiss
	}
	return data, err
}

// Put implements autocert.Cache.
func (c cache) Put(ctx context.Context, name string, data []byte) error {
	return c.store.PutCertificate(ctx, name, data)
}

// Delete implements autocert.Cache.
func (c cache) Delete(ctx context.Context, name string) error {
	return c.store.DeleteCertificate(ctx, name)
}
