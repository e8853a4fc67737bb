//go:build clients

package main

import (
	"crypto/tls"
	"net/http"
	"strconv"
	"testing"
	"time"

	gosmtp "github.com/emersion/go-smtp"

	"github.com/postroom/postroom/internal/acmetest"
)

// TestHTTPSByACME starts with no certificate, and has one of the ACME server soon,
// for HTTPS and STARTTLS, and the same one after a restart.
func TestHTTPSByACME(t *testing.T) {
	t.Parallel()
	const host = "mail.example.com"
	port := acmetest.FreePort(t)
	server := acmetest.Start(t, acmetest.Config{HTTP: acmetest.FreePort(t), TLS: port, Hosts: []string{host}})
	data, env := t.TempDir(), []string{
		"POSTROOM_HTTPS=127.0.0.1:" + strconv.Itoa(port), "POSTROOM_ACME_HOSTS=" + host, "POSTROOM_ACME_DIRECTORY=" + server.Directory,
		"SSL_CERT_FILE=" + server.CAFile,
	}
	roots := server.Roots(t)
	var serial string
	for _, when := range []string{"at first", "after a restart"} {
		s := serve(t, data, env...)
		again := time.NewTicker(50 * time.Millisecond)
		var client *http.Client
		for late := time.After(patience); ; {
			client = httpsClient(t, s.https, roots)
			res, err := client.Get("https://" + host + "/health")
			if err == nil {
				_ = res.Body.Close() // it is the certificate that counts
				got := res.TLS.PeerCertificates[0].SerialNumber.String()
				if serial != "" && got != serial {
					t.Errorf("%s: another certificate", when)
				}
				serial = got
				break
			}
			select {
			case <-again.C:
			case <-late:
				t.Fatalf("%s: %v\n%s", when, err, s.log)
			}
		}
		again.Stop()
		c, err := gosmtp.DialStartTLS(s.smtp, &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Quit(); err != nil {
			t.Error(err)
		}
		client.CloseIdleConnections()
		s.stop(t)
	}
}
