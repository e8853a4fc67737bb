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
	// fetchTimeout is the timeout suggested by RFC 8461 section 3.3.
	fetchTimeout = time.Minute
	// maxPolicy is the maximum length of a policy in bytes, as RFC 8461 section
	// 3.3 suggests.
	maxPolicy = 64 << 10
)

// FetchConfig configures a Fetcher.
type FetchConfig struct {
	// Dial connects to a host name and port of a policy host.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
	// Port is the port of policy hosts; 0 means 443.
	Port uint16
}

// Fetcher fetches policies. It is safe for concurrent use.
type Fetcher struct {
	client *http.Client
	port   string
}

// NewFetcher returns a Fetcher. It does not reuse connections or cache
// responses, because a policy has a lifetime of its own.
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

// Fetch fetches the policy of a domain, which must be in ASCII form.
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
	defer func() { _ = res.Body.Close() }() // read completely, or not needed
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
