package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/netguard"
)

const (
	connectTimeout = 5 * time.Second
	// maxRead and maxKept limit, in bytes, how much of a response is read and
	// stored.
	maxRead = 64 << 10
	maxKept = 1 << 10
	// Maximum numbers of idle connections, in total and per endpoint.
	maxIdle, maxIdlePerHost = 256, 8
)

// poster posts to endpoints. It has one client per scheme, because http and
// https may reach different addresses.
type poster struct {
	clients map[string]*http.Client
	timeout time.Duration
	agent   string
}

func newPoster(cfg Config) *poster {
	p := &poster{clients: map[string]*http.Client{}, timeout: cfg.Timeout, agent: cfg.Agent}
	for _, scheme := range []string{"http", "https"} {
		dialer := &net.Dialer{Timeout: connectTimeout, Resolver: cfg.Resolver, Control: cfg.Targets.Control(scheme)}
		p.clients[scheme] = &http.Client{
			Transport: &http.Transport{
				DialContext:            dialer.DialContext,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
				TLSHandshakeTimeout:    connectTimeout,
				DisableCompression:     true, // the response is stored as received
				MaxResponseHeaderBytes: maxRead,
				MaxIdleConns:           maxIdle,
				MaxIdleConnsPerHost:    maxIdlePerHost,
				IdleConnTimeout:        30 * time.Second,
				ForceAttemptHTTP2:      true,
			},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return p
}

func (p *poster) close() {
	for _, c := range p.clients {
		c.CloseIdleConnections()
	}
}

// response is the status and the beginning of the body of a response, or the reason
// why there is none.
type response struct {
	status     int // 0: no response
	fault      string
	body       string
	retryAfter time.Duration
}

func (a response) ok() bool { return a.status/100 == 2 }

// post sends body to an endpoint and returns its response.
func (p *poster) post(ctx context.Context, url string, header http.Header, body []byte) response {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return response{fault: "the URL is not valid"}
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", p.agent)
	client := p.clients[req.URL.Scheme]
	if client == nil {
		return response{fault: "the URL is not valid"}
	}
	res, err := client.Do(req)
	if err != nil {
		return response{fault: faultOf(err)}
	}
	defer func() { _ = res.Body.Close() }()
	a := response{status: res.StatusCode}
	if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		if n, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 31); err == nil {
			a.retryAfter = time.Duration(n) * time.Second
		}
	}
	// The status counts even if reading the body fails. Read more than is
	// stored, so that the connection can be reused.
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxKept))
	_, _ = io.CopyN(io.Discard, res.Body, maxRead-maxKept)
	a.body = keep(text)
	return a
}

// keep returns the beginning of a body as text that every database accepts.
func keep(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), ""), "\x00", "")
}

// faultOf returns why there was no response. It leaves out IP addresses, which
// may reveal our internal DNS to the user.
func faultOf(err error) string {
	var (
		dns     *net.DNSError
		timeout net.Error
		cert    *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, netguard.ErrRefused):
		return "the address may not be reached"
	case errors.As(err, &cert):
		return "the certificate is not valid for this name"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no response in time"
	case errors.As(err, &dns):
		return "the name does not resolve"
	case errors.Is(err, http.ErrSchemeMismatch), strings.Contains(err.Error(), "tls: "): // most errors of crypto/tls have no type
		return "the TLS handshake failed"
	}
	return "the connection failed"
}
