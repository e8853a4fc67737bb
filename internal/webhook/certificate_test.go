package webhook_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// certificate returns a self-signed certificate for an address with an expiry.
func certificate(t *testing.T, address net.IP, end time.Time) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hooks.example"}, IPAddresses: []net.IP{address},
		NotBefore: end.Add(-24 * time.Hour), NotAfter: end, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, parsed
}

func TestBadCertificatesAreRefused(t *testing.T) { // W6
	t.Parallel()
	s := storetest.OpenSQLite(t)
	in := storetest.Inbox(t, s)
	var posts atomic.Int64
	server := func(certificate tls.Certificate, most uint16) string {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posts.Add(1) }))
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS10, MaxVersion: most}
		srv.StartTLS()
		t.Cleanup(srv.Close)
		return srv.URL
	}
	here, elsewhere := net.IPv4(127, 0, 0, 1), net.IPv4(127, 0, 0, 9)
	valid, validRoot := certificate(t, here, time.Now().Add(time.Hour))
	expired, expiredRoot := certificate(t, here, time.Now().Add(-time.Minute))
	others, othersRoot := certificate(t, elsewhere, time.Now().Add(time.Hour))
	roots := x509.NewCertPool()
	for _, root := range []*x509.Certificate{validRoot, expiredRoot, othersRoot} {
		roots.AddCert(root)
	}
	good := server(valid, tls.VersionTLS13)

	const untrusted, handshake = "the certificate is not valid for this name", "the TLS handshake failed"
	for _, tt := range []struct {
		name, url string
		roots     *x509.CertPool
		want      string // empty: success
	}{
		{"a good one", good, roots, ""},
		{"expired", server(expired, tls.VersionTLS13), roots, untrusted},
		{"signed by itself", good, x509.NewCertPool(), untrusted},
		{"of another name", server(others, tls.VersionTLS13), roots, untrusted},
		{"TLS 1.0", server(valid, tls.VersionTLS10), roots, handshake},
		{"TLS 1.1", server(valid, tls.VersionTLS11), roots, handshake},
		{"plain http", strings.Replace(newReceiver(t).URL, "http:", "https:", 1), roots, handshake},
	} {
		w, _ := newEndpoint(t, s, in.AccountID, tt.url)
		d := newDispatcher(t, s, time.Now, func(c *webhook.Config) { c.RootCAs = tt.roots })
		r, err := d.Test(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if r.Error != nil {
			got = *r.Error
		}
		if ok := r.Status == store.DeliverySucceeded; got != tt.want || ok != (tt.want == "") {
			t.Errorf("%s: %s %q", tt.name, r.Status, got)
		}
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("%d posts arrived, want only the good one", n)
	}
}
