// Package acmecert gets the certificates of a node by ACME (RFC 8555), and renews
// them. What is got, and what is under way, lies in the database: all nodes use the
// same certificates, and each can answer the challenge to another's order, by HTTP
// on port 80 (RFC 8555, section 8.3) or by TLS on port 443 (RFC 8737).
//
// A certificate is asked for at the start and when it is due for renewal, never
// because somebody connects: who connects gets what there is. As long as there is
// none that is one signed by nobody, with which senders of mail encrypt all the same
// (RFC 7435), and to which clients of the API object. What fails is tried again
// later and later, as operators of ACME limit failures.
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
	// look is how often a node looks whether its certificates were renewed.
	look = 10 * time.Minute
	// orderTime is for how long no node tries again after one began to get a
	// certificate: Let's Encrypt forgives a failure in that time. orderWait is how
	// long the others wait between two looks.
	orderTime = 12 * time.Minute
	orderWait = 5 * time.Second
)

// challengePath is where challenges by HTTP are (RFC 8555, section 8.3).
const challengePath = "/.well-known/acme-challenge/"

// errOther means that another node is getting a certificate, or has just failed.
var errOther = errors.New("another node has asked for it")

// retries are the pauses after failures, where there is one node; the last repeats.
var retries = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}

// Config is what a Manager needs.
type Config struct {
	Store *store.Store
	// Hosts are the names that certificates are for, each with one of its own. The
	// first one's is given to who names none, or another.
	Hosts []string
	// Directory is the address of the ACME server's directory, and Email, which may
	// be empty, where it may write to.
	Directory, Email string
	// Alone says that there are no other nodes.
	Alone bool
	// Client makes the requests to it; nil means http.DefaultClient.
	Client *http.Client
	Now    func() time.Time
	Log    *slog.Logger
}

// Manager is the certificates of a node.
type Manager struct {
	cfg     Config
	acme    *autocert.Manager
	unnamed *tls.Certificate // signed by nobody
	have    atomic.Pointer[map[string]*tls.Certificate]
}

// New returns a manager that has no certificate yet.
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

// GetCertificate is for tls.Config.GetCertificate, whose NextProtos have
// acme.ALPNProto where challenges can come in.
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

// HTTPHandler answers challenges and leaves everything else to next. It has to be
// called before Run.
func (m *Manager) HTTPHandler(next http.Handler) http.Handler {
	inner := m.acme.HTTPHandler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.Host); err == nil && strings.HasPrefix(r.URL.Path, challengePath) {
			r = r.WithContext(r.Context()) // a copy
			r.Host = host                  // without the port that a proxy may have been asked at
		}
		inner.ServeHTTP(w, r)
	})
}

// Run gets the certificates and keeps them new until ctx ends.
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

// RunOnce gets the certificates that are missing, and takes over those that were
// renewed, here or by another node.
func (m *Manager) RunOnce(ctx context.Context) error {
	have := map[string]*tls.Certificate{}
	var errs []error
	var other error // there is time for those
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

// tell logs a certificate that was not there before.
func (m *Manager) tell(ctx context.Context, host string, c *tls.Certificate) {
	old := m.have.Load()
	if c == nil || old != nil && (*old)[host] != nil && c.Leaf.Equal((*old)[host].Leaf) {
		return
	}
	m.cfg.Log.InfoContext(ctx, "certificate in use", "host", host, "until", c.Leaf.NotAfter.UTC().Format(time.RFC3339))
}

// get returns the certificate of a host. Of several nodes one orders it, unless it
// is there: errOther for the others.
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

// order lets autocert get the certificate, from its memory, the database or the
// ACME server. It asks as somebody who connects would, and does not listen to ctx.
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

// selfSigned makes a certificate that nobody vouches for.
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

// cache keeps what autocert has, in the database.
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
