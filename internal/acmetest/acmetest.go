// Package acmetest runs a real ACME server for tests: Pebble, by the authors of Let's
// Encrypt. It keeps no data and listens on unused ports.
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
	// version is the version of the program that `make` installs into the folder bin.
	version = "v2.10.1"
	timeout = 30 * time.Second
)

// Config says where the server sends challenges and how long its certificates are valid.
type Config struct {
	// HTTP and TLS are ports of this machine, in place of 80 and 443.
	HTTP, TLS int
	// Hosts are the names that resolve to this machine.
	Hosts []string
	// Validity is how long certificates are valid; 0 means 90 days.
	Validity time.Duration
}

// Server is an ACME server.
type Server struct {
	// Directory is the URL of its directory.
	Directory string
	// CAFile is the file with the certificate of its own HTTPS, and
	// Client trusts it.
	CAFile string
	Client *http.Client

	management string
}

// Start starts a server. Without the program it skips the test, or fails it in CI.
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
	validity := cfg.Validity
	if validity == 0 {
		validity = 90 * 24 * time.Hour
	}
	text, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": fmt.Sprintf("127.0.0.1:%d", api), "managementListenAddress": fmt.Sprintf("127.0.0.1:%d", management),
		"certificate": s.CAFile, "privateKey": filepath.Join(dir, "key.pem"), "httpPort": cfg.HTTP, "tlsPort": cfg.TLS,
		"keyAlgorithm": "ecdsa", "retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles": map[string]any{"default": map[string]any{"description": "for tests", "validityPeriod": int(validity.Seconds())}},
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

// find returns the program: the one in POSTROOM_TEST_PEBBLE, the one that make builds, or an
// installed one.
func find(t testing.TB) string {
	t.Helper()
	if program := os.Getenv("POSTROOM_TEST_PEBBLE"); program != "" {
		return program
	}
	dir, err := os.Getwd() // the folder of the package under test
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if program, err := exec.LookPath(filepath.Join(dir, "bin", "pebble-"+version)); err == nil {
			return program
		}
	}
	program, err := exec.LookPath("pebble")
	if err != nil {
		const why = "pebble not found: run `make clients`, which builds it, or set POSTROOM_TEST_PEBBLE"
		skiptest.OutsideCI(t, why)
	}
	return program
}

// FreePort returns an unused port of this machine.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // only the port number is needed
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

// run runs the program until the test ends. It makes the program validate at once: by
// default, it waits some seconds to teach clients timeout.
func run(t testing.TB, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // the path comes from find
	cmd.Env = append(os.Environ(), "PEBBLE_VA_NOSLEEP=1", "PEBBLE_AUTHZREUSE=0")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatalf("start the ACME server: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // its exit status does not matter
	})
}

func (s *Server) await(t testing.TB) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for late := time.After(timeout); ; {
		_, err := s.get(s.Directory)
		if err == nil {
			return
		}
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("the ACME server does not respond: %v", err)
		}
	}
}

// Roots returns the roots of the server's certificates.
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
