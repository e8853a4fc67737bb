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
	// maxRead and maxKept bound, in bytes, what is read and kept of an answer.
	maxRead = 64 << 10
	maxKept = 1 << 10
	// maxIdle is how many connections are kept for more events, in all and of one
	// endpoint.
	maxIdle, maxIdlePerHost = 256, 8
)

// poster posts to endpoints, by one client for each scheme: where plain http may
// go is another question than where https may.
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
				DisableCompression:     true, // an answer is kept as it comes, not unpacked
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

// answer is what came back: a status with the beginning of the body, or why
// there is none.
type answer struct {
	status     int // 0: no answer
	fault      string
	body       string
	retryAfter time.Duration
}

func (a answer) ok() bool { return a.status/100 == 2 }

// post sends body to an endpoint and reads what it answers.
func (p *poster) post(ctx context.Context, url string, header http.Header, body []byte) answer {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer{fault: "the URL is not valid"}
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", p.agent)
	client := p.clients[req.URL.Scheme]
	if client == nil {
		return answer{fault: "the URL is not valid"}
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{fault: faultOf(err)}
	}
	defer func() { _ = res.Body.Close() }()
	a := answer{status: res.StatusCode}
	if a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable {
		if n, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 31); err == nil {
			a.retryAfter = time.Duration(n) * time.Second
		}
	}
	// What the status says holds, however the body ends. What is read of it beyond
	// what is kept is for the connection, which can then be used again.
	text, _ := io.ReadAll(io.LimitReader(res.Body, maxKept))
	_, _ = io.CopyN(io.Discard, res.Body, maxRead-maxKept)
	a.body = keep(text)
	return a
}

// keep is the beginning of an answer as text that every database takes.
func keep(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), ""), "\x00", "")
}

// faultOf says why there was no answer, without addresses: the endpoint's owner
// may not be meant to learn what its name resolves to from here.
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
	case errors.Is(err, http.ErrSchemeMismatch), strings.Contains(err.Error(), "tls: "): // most faults of crypto/tls have no type
		return "the TLS handshake failed"
	}
	return "the connection failed"
}
