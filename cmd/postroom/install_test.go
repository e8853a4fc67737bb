package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/smtp/smtptest"
)

// The derivation must never change: with other subkeys an installation could not
// read its own private keys.
func TestDeriveStays(t *testing.T) {
	t.Parallel()
	keys, err := derive(secret(strings.Repeat("postroom", 4)))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{hex.EncodeToString(keys.cursors), hex.EncodeToString(keys.files), hex.EncodeToString(keys.seal)}
	want := []string{
		"1a1840042d10f227593dcbfc8fca56b0666b527f190289dda5d453e187391cff",
		"158dfc6d4a286c80fa98223371be9a001283967dbcdd49022252a5f6bfd2cdf5",
		"64a91d753b7c7f6df466884e20d9eac086082ffb22a2e1239e160f76ea819f63",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSecretFile(t *testing.T) {
	t.Parallel()
	cfg := Config{Data: t.TempDir()}
	made := newSecret()
	if made == newSecret() || len(made) < 43 {
		t.Fatalf("%d characters, want 256 random bits", len(made))
	}
	if err := made.keep(cfg.Data); err != nil {
		t.Fatal(err)
	}
	if read, err := cfg.installSecret(); err != nil || read != made {
		t.Errorf("read back: %v, the same: %t", err, read == made)
	}
	if err := newSecret().keep(cfg.Data); err == nil || !strings.Contains(err.Error(), "another node wrote the installation secret") {
		t.Errorf("a second one: %v", err)
	}
	if err := os.WriteFile(filepath.Join(cfg.Data, secretFile), []byte("cut off"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.installSecret(); err == nil || !strings.Contains(err.Error(), "restore the original") {
		t.Errorf("half of one: %v", err)
	}
	if text := fmt.Sprintf("%v %+v %s", made, Config{Secret: made, BootstrapKey: "k"}, made); strings.Contains(text, string(made)) {
		t.Error("a secret can be printed by accident")
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	tests := []struct {
		set, listens, want string
		guessed            bool
	}{
		{"https://mail.example.com/api", "0.0.0.0:8080", "https://mail.example.com/api", false},
		{"", "127.0.0.1:8080", "http://127.0.0.1:8080", false},
		{"", "192.0.2.7:80", "http://192.0.2.7:80", false},
		{"", "[2001:db8::7]:80", "http://[2001:db8::7]:80", false},
		{"", "0.0.0.0:8080", "http://127.0.0.1:8080", true},
		{"", "[::]:8080", "http://127.0.0.1:8080", true},
	}
	for _, tt := range tests {
		addr, err := net.ResolveTCPAddr("tcp", tt.listens)
		if err != nil {
			t.Fatal(err)
		}
		got, guessed := Config{BaseURL: webURL(tt.set)}.baseURL(addr, nil)
		if got.String() != tt.want || guessed != tt.guessed {
			t.Errorf("%q on %s: %s, guessed %t, want %s, %t", tt.set, tt.listens, got, guessed, tt.want, tt.guessed)
		}
	}
}

// certFiles writes a new certificate for name into dir and returns the paths of
// it and its key.
func certFiles(t *testing.T, dir, name string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	cfg, pool := smtptest.NewTLS(t, name)
	private, err := x509.MarshalPKCS8PrivateKey(cfg.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: cfg.Certificates[0].Certificate[0]},
		key:  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key, pool
}

func TestCertificateIsReadAgainWhenItWasRenewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key, _ := certFiles(t, dir, "old.example.com")
	now := time.Now()
	c, err := openCertificate(cert, key, func() time.Time { return now }, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	wantName := func(when, name string) {
		t.Helper()
		pair, err := c.get(&tls.ClientHelloInfo{})
		if err != nil || pair.Leaf.DNSNames[0] != name {
			t.Errorf("%s: %v, %v, want %s", when, pair.Leaf.DNSNames, err, name)
		}
	}
	wantName("at first", "old.example.com")

	certFiles(t, dir, "new.example.com")
	later := time.Now().Add(time.Hour) // whatever the file system's clock resolves
	if err := os.Chtimes(cert, later, later); err != nil {
		t.Fatal(err)
	}
	wantName("renewed, within the minute", "old.example.com")
	now = now.Add(lookAgain)
	wantName("a minute later", "new.example.com")

	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lookAgain)
	wantName("with its key gone", "new.example.com")
}
