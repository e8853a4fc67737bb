// Package acmetest runs a real ACME server for tests: Pebble, that of the authors of
// Let's Encrypt. It keeps nothing, and listens on ports of its own.
package acmetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/skiptest"

	"github.com/postroom/postroom/smtp/smtptest"
)

const (
	// version names the program that `make` puts into the folder bin.
	version  = "v2.10.1"
	patience = 30 * time.Second
)

// Config says where challenges are to be answered and how long certificates live.
type Config struct {
	// HTTP and TLS are ports of this machine, in place of 80 and 443.
	HTTP, TLS int
	// Hosts are the names that lead to this machine.
	Hosts []string
	// Life is of certificates; 0 means 90 days.
	Life time.Duration
}

// Server is an ACME server.
type Server struct {
	// Directory is the address of its directory.
	Directory string
	// CAFile holds the certificate that its own HTTPS is to be trusted by, and
	// Client trusts it.
	CAFile string
	Client *http.Client

	management string
}

// Start starts a server, or skips the test when there is no program, which in CI is
// a failure.
func Start(t testing.TB, cfg Config) *Server {
	t.Helper()
	program, dir := find(t), t.TempDir()
	own, pool := smtptest.NewTLS(t, "localhost")
	s := &Server{
		CAFile: filepath.Join(dir, "cert.pem"),
		Client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}},
	}
	t.Cleanup(s.Client.CloseIdleConnections)
	api, management := FreePort(t), FreePort(t)
	s.Directory = fmt.Sprintf("https://localhost:%d/dir", api)
	s.management = fmt.Sprintf("https://localhost:%d", management)
	writeKey(t, dir, own.Certificates[0])
	life := cfg.Life
	if life == 0 {
		life = 90 * 24 * time.Hour
	}
	text, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": fmt.Sprintf("127.0.0.1:%d", api), "managementListenAddress": fmt.Sprintf("127.0.0.1:%d", management),
		"certificate": s.CAFile, "privateKey": filepath.Join(dir, "key.pem"), "httpPort": cfg.HTTP, "tlsPort": cfg.TLS,
		"keyAlgorithm": "ecdsa", "retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles": map[string]any{"default": map[string]any{"description": "for tests", "validityPeriod": int(life.Seconds())}},
	}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	zones := smtptest.Zones{}
	for _, host := range cfg.Hosts {
		zones[host+"."] = smtptest.A("127.0.0.1")
	}
	run(t, program, "-config", filepath.Join(dir, "config.json"), "-dnsserver", smtptest.NewDNS(t, zones))
	s.await(t)
	return s
}

// find returns the program: the one that POSTROOM_TEST_PEBBLE names, the one that
// make builds, or one that is installed.
func find(t testing.TB) string {
	t.Helper()
	if program := os.Getenv("POSTROOM_TEST_PEBBLE"); program != "" {
		return program
	}
	dir, err := os.Getwd() // of the package under test
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if program, err := exec.LookPath(filepath.Join(dir, "bin", "pebble-"+version)); err == nil {
			return program
		}
	}
	program, err := exec.LookPath("pebble")
	if err != nil {
		const why = "there is no pebble: `make test` builds it, or POSTROOM_TEST_PEBBLE names it"
		skiptest.OutsideCI(t, why)
	}
	return program
}

// FreePort is a port of this machine that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it has served its purpose
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("no port in %v", l.Addr())
	}
	return addr.Port
}

func writeKey(t testing.TB, dir string, c tls.Certificate) {
	t.Helper()
	private, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: c.Certificate[0]}, "key.pem": {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// run runs the program until the test ends. It validates at once, and not after
// some seconds, as it does to keep clients patient.
func run(t testing.TB, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // found by us
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_AUTHZREUSE=0")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatalf("start the ACME server: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // as killed
	})
}

func (s *Server) await(t testing.TB) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for late := time.After(patience); ; {
		_, err := s.get(s.Directory)
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("the ACME server does not answer: %v", err)
		}
	}
}

// Roots are what its certificates are to be trusted by.
func (s *Server) Roots(t testing.TB) *x509.CertPool {
	t.Helper()
	text, err := s.get(s.management + "/roots/0")
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatalf("roots of the ACME server: %v", err)
	}
	return pool
}

func (s *Server) get(url string) ([]byte, error) {
	res, err := s.Client.Get(url) //nolint:noctx // the client of a test on this machine
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	return io.ReadAll(res.Body)
}
