package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/httpapi"
)

// httpsClient reaches whatever name at one address.
func httpsClient(t *testing.T, addr string, roots *x509.CertPool) *http.Client {
	t.Helper()
	var d net.Dialer
	conns := &http.Transport{
		ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.DialContext(ctx, network, addr)
		},
	}
	t.Cleanup(conns.CloseIdleConnections)
	return &http.Client{Transport: conns, Timeout: patience}
}

func TestHTTPSWithACertificateFromFiles(t *testing.T) {
	t.Parallel()
	cert, key, pool := certFiles(t, t.TempDir(), "mail.example.com")
	s := serve(t, t.TempDir(), "POSTROOM_HTTPS=127.0.0.1:0", "POSTROOM_HOSTNAME=mail.example.com", "POSTROOM_TLS_CERT="+cert, "POSTROOM_TLS_KEY="+key)
	_, port, _ := net.SplitHostPort(s.https)
	if want := "https://mail.example.com:" + port; s.api != want {
		t.Errorf("the API is said to be at %s, want %s", s.api, want)
	}
	client := httpsClient(t, s.https, pool)
	client.Transport = exchanges.Transport(client.Transport)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.api+"/v1/inboxes", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Errorf("%s over %s, %v", res.Status, res.Proto, err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	client.CloseIdleConnections()
	c, err := net.Dial("tcp", s.https) // a connection that sends nothing
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Write([]byte("HELO\r\n"))
	if _, rest := io.Copy(io.Discard, c); err != nil || rest != nil {
		t.Errorf("%v, %v", err, rest)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	s.stop(t)
	if strings.Contains(s.log.String(), "WARN") {
		t.Errorf("the log says:\n%s", s.log)
	}
}

func TestHTTPLeadsToHTTPS(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	base := &url.URL{Scheme: "https", Host: "mail.example.com"}
	tests := []struct {
		name, listens, method, path, auth string
		status                            int
		location, says                    string
	}{
		{"a program of this machine", "127.0.0.1:8080", "POST", "/v1/inboxes", "Bearer k", 418, "", ""},
		{"a browser", "0.0.0.0:80", "GET", "/docs?a=b", "", 308, "https://mail.example.com/docs?a=b", ""},
		{"a load balancer", "0.0.0.0:80", "GET", "/health", "", 418, "", ""},
		{"a key in clear", "0.0.0.0:80", "GET", "/v1/inboxes", "Bearer k", 400, "", `"invalid_request"`},
		{"a body in clear", "[::]:80", "POST", "/v1/inboxes", "", 400, "", "https://mail.example.com"},
		{"a path that is another host", "0.0.0.0:80", "GET", "//evil.example/", "", 308, "https://mail.example.com//evil.example/", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr, err := net.ResolveTCPAddr("tcp", tt.listens)
			if err != nil {
				t.Fatal(err)
			}
			w, r := httptest.NewRecorder(), httptest.NewRequest(tt.method, "http://x"+tt.path, nil)
			r.Header.Set("Authorization", tt.auth)
			httpapi.RequestIDs(leadToHTTPS(api, addr, base), time.Now).ServeHTTP(w, r)
			if id := w.Header().Get("X-Request-Id"); id == "" || tt.status == http.StatusBadRequest && !strings.Contains(w.Body.String(), id) {
				t.Errorf("request id %q: %s", id, w.Body)
			}
			if w.Code != tt.status || w.Header().Get("Location") != tt.location || !strings.Contains(w.Body.String(), tt.says) {
				t.Errorf("%d to %q: %s", w.Code, w.Header().Get("Location"), w.Body)
			}
		})
	}
}
