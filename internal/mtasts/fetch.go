package mtasts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	// fetchTimeout is what section 3.3 suggests.
	fetchTimeout = time.Minute
	// maxPolicy is how long a policy may be, in bytes, as section 3.3 suggests.
	maxPolicy = 64 << 10
)

// FetchConfig says how policies are fetched.
type FetchConfig struct {
	// Dial connects to the policy host, by name and port.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// RootCAs are who may have signed its certificate; nil means those that the
	// system trusts.
	RootCAs *x509.CertPool
	// Port is the port of policy hosts; 0 means 443.
	Port uint16
}

// Fetcher fetches policies. It is safe for use by many goroutines.
type Fetcher struct {
	client *http.Client
	port   string
}

// NewFetcher returns a Fetcher. It reuses no connection and caches no
// response, because a policy has an age of its own.
func NewFetcher(cfg FetchConfig) *Fetcher {
	f := &Fetcher{client: &http.Client{
		Transport: &http.Transport{
			DialContext:            cfg.Dial,
			TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxPolicy,
		},
		// Section 3.3: redirects are not followed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       fetchTimeout,
	}}
	if cfg.Port != 0 && cfg.Port != 443 {
		f.port = ":" + strconv.Itoa(int(cfg.Port))
	}
	return f
}

// Fetch fetches the policy of a domain, which is in its ASCII form.
func (f *Fetcher) Fetch(ctx context.Context, domain string) (Policy, error) {
	url := "https://mta-sts." + domain + f.port + "/.well-known/mta-sts.txt"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Policy{}, fmt.Errorf("fetch policy: %w", err)
	}
	res, err := f.client.Do(req)
	if err != nil {
		return Policy{}, fmt.Errorf("fetch policy: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // read to its end, or not needed
	if res.StatusCode != http.StatusOK {
		return Policy{}, fmt.Errorf("fetch policy: the response is %s", res.Status)
	}
	if kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || kind != "text/plain" {
		return Policy{}, fmt.Errorf("fetch policy: the response is %.80q and not text/plain", res.Header.Get("Content-Type"))
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxPolicy+1))
	if err != nil {
		return Policy{}, fmt.Errorf("fetch policy: %w", err)
	}
	if len(text) > maxPolicy {
		return Policy{}, errors.New("fetch policy: the response is too long")
	}
	return ParsePolicy(text)
}
