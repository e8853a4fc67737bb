//go:build clients

package acmecert_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/postroom/postroom/internal/acmecert"
	"github.com/postroom/postroom/internal/acmetest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const host = "mail.postroom.example"

func manager(t *testing.T, s *store.Store, server *acmetest.Server, hosts ...string) *acmecert.Manager {
	t.Helper()
	m, err := acmecert.New(acmecert.Config{
		Store: s, Hosts: hosts, Directory: server.Directory, Email: "root@postroom.example", Alone: s.Engine() == "sqlite",
		Client: server.Client, Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// present returns the certificate for a client that requests name.
func present(t *testing.T, m *acmecert.Manager, name string) *x509.Certificate {
	t.Helper()
	c, err := m.GetCertificate(&tls.ClientHelloInfo{ServerName: name, SupportedProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf
}

func wantTrusted(t *testing.T, server *acmetest.Server, m *acmecert.Manager, asked, name string) {
	t.Helper()
	c, err := m.GetCertificate(&tls.ClientHelloInfo{ServerName: asked})
	if err != nil {
		t.Fatal(err)
	}
	chain := x509.NewCertPool()
	for _, der := range c.Certificate[1:] {
		if between, err := x509.ParseCertificate(der); err == nil {
			chain.AddCert(between)
		}
	}
	if _, err := c.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: server.Roots(t), Intermediates: chain}); err != nil {
		t.Errorf("the certificate for %q: %v", asked, err)
	}
}

// serve listens on a free port and returns it.
func serve(t *testing.T, s *httptest.Server, start func()) (port int) {
	t.Helper()
	start()
	t.Cleanup(s.Close)
	addr, ok := s.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("no port")
	}
	return addr.Port
}

// TestTwoNodesGetOneCertificate runs two nodes on one database. The ACME
// server's HTTP challenge reaches only the second node. Whichever node orders,
// only one certificate is issued, and both use it. The database stores it
// sealed (K1).
func TestTwoNodesGetOneCertificate(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		var handler http.Handler
		var mu sync.Mutex
		web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			h := handler
			mu.Unlock()
			h.ServeHTTP(w, r)
		}))
		port := serve(t, web, web.Start)
		hosts := []string{host, "mx1.postroom.example"}
		server := acmetest.Start(t, acmetest.Config{HTTP: port, TLS: acmetest.FreePort(t), Hosts: hosts})
		s := storetest.OpenConfig(t, cfg)
		first, second := manager(t, s, server, hosts...), manager(t, storetest.OpenConfig(t, cfg), server, hosts...)
		first.HTTPHandler(nil)
		mu.Lock()
		handler = second.HTTPHandler(http.NotFoundHandler())
		mu.Unlock()
		if got := present(t, first, host); got.Issuer.String() != got.Subject.String() {
			t.Errorf("before there is one, the certificate is of %s", got.Issuer)
		}
		if err := first.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := second.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		for asked, name := range map[string]string{host: host, "MX1.postroom.example.": hosts[1], "": host, "other.example": host} {
			wantTrusted(t, server, first, asked, name)
			if a, b := present(t, first, asked), present(t, second, asked); !a.Equal(b) {
				t.Errorf("%q: one node presents %v, the other %v", asked, a.SerialNumber, b.SerialNumber)
			}
		}
		wantSealed(t, s, cfg)
	})
}

// wantSealed checks that the stored values can be opened but do not occur in
// the database file.
func wantSealed(t *testing.T, s *store.Store, cfg store.Config) {
	t.Helper()
	kept, err := s.Certificate(t.Context(), host)
	if err != nil || !bytes.Contains(kept, []byte("PRIVATE KEY")) {
		t.Errorf("kept is %d bytes: %v", len(kept), err)
	}
	if s.Engine() != "sqlite" {
		return
	}
	for _, suffix := range []string{"", "-wal"} {
		file, err := os.ReadFile(cfg.Database + suffix)
		if err != nil || bytes.Contains(file, []byte("PRIVATE KEY")) {
			t.Errorf("%d bytes of the database hold a private key, or: %v", len(file), err)
		}
	}
}

// TestByTLSAndRenewed gets a short-lived certificate with the TLS challenge and
// waits for its renewal.
func TestByTLSAndRenewed(t *testing.T) {
	t.Parallel()
	var m *acmecert.Manager
	web := httptest.NewUnstartedServer(http.NotFoundHandler())
	web.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", acme.ALPNProto},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return m.GetCertificate(hello) },
	}
	s := storetest.OpenSQLite(t)
	web.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	l := acmetest.FreePort(t)
	server := acmetest.Start(t, acmetest.Config{HTTP: acmetest.FreePort(t), TLS: l, Hosts: []string{host}, Validity: 9 * time.Second})
	m = manager(t, s, server, host)
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(l)))
	if err != nil {
		t.Fatal(err)
	}
	_ = web.Listener.Close() // another listener replaces it
	web.Listener = listener
	serve(t, web, web.StartTLS)
	if err := m.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTrusted(t, server, m, host, host)
	was := present(t, m, host)
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for late := time.After(time.Minute); present(t, m, host).Equal(was); {
		select {
		case <-again.C:
			if err := m.RunOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
		case <-late:
			t.Fatal("the certificate is not renewed")
		}
	}
	wantTrusted(t, server, m, host, host)
}

// After a failure, a node keeps its certificates, and other nodes do not retry
// at once.
func TestFailedOrder(t *testing.T) {
	t.Parallel()
	storetest.RunNodes(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		server := acmetest.Start(t, acmetest.Config{HTTP: acmetest.FreePort(t), TLS: acmetest.FreePort(t), Hosts: []string{host}})
		m := manager(t, s, server, host)
		m.HTTPHandler(nil)
		if err := m.RunOnce(t.Context()); err == nil {
			t.Error("got a certificate without a response to a challenge")
		}
		if got := present(t, m, host); got.Issuer.String() != got.Subject.String() {
			t.Errorf("the certificate is of %s", got.Issuer)
		}
		if s.Engine() == "sqlite" {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := manager(t, s, server, host).RunOnce(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 10*time.Second {
			t.Errorf("another node, after %v: %v", time.Since(began), err)
		}
	})
}
