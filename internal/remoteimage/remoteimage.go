// Package remoteimage fetches the remote images of a message when a user asks
// to see them. The sender learns only that the message was opened, not the
// user's IP address or browser. Requests carry no cookies.
//
// The URLs come from unknown senders. They are checked like webhook endpoints:
// when requested, at each redirect, and when connecting. Only https to public
// addresses is allowed. Plain http is upgraded to https. The result is always a
// bitmap image. Its first bytes determine its type. Its size, number of pixels and
// fetch time are limited.
package remoteimage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// MaxBytes is the maximum size of an image in bytes.
	MaxBytes = 4 << 20
	// MaxPixels is the maximum number of pixels of an image.
	MaxPixels = 40 << 20
	// DefaultTimeout is the default timeout of one fetch.
	DefaultTimeout = 10 * time.Second
	// atOnce is the maximum number of concurrent fetches. Others wait. The
	// memory used is at most atOnce times MaxBytes.
	atOnce       = 8
	maxRedirects = 3
	maxHeader    = 32 << 10
)

// ErrNoImage means that the URL does not lead to a supported image.
var ErrNoImage = errors.New("no image that can be shown")

// Targets decides which URLs are allowed. netguard.Targets implements it.
type Targets interface {
	Check(ctx context.Context, url string) error
	Control(scheme string) func(network, address string, _ syscall.RawConn) error
}

// Config configures a Fetcher. Targets is required.
type Config struct {
	Targets Targets
	// Resolver resolves host names; nil means the system's resolver.
	Resolver *net.Resolver
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
	// Timeout limits one fetch; 0 means DefaultTimeout.
	Timeout time.Duration
}

// Image is a supported image.
type Image struct {
	Type string // image/png, image/gif, image/jpeg or image/webp
	Body []byte
}

// Fetcher fetches images. It is safe for concurrent use.
type Fetcher struct {
	targets Targets
	client  *http.Client
	timeout time.Duration
	slots   *semaphore.Weighted
}

// New returns a Fetcher.
func New(cfg Config) *Fetcher {
	f := &Fetcher{targets: cfg.Targets, timeout: cfg.Timeout, slots: semaphore.NewWeighted(atOnce)}
	if f.timeout == 0 {
		f.timeout = DefaultTimeout
	}
	f.client = &http.Client{Transport: newTransport(cfg), CheckRedirect: f.redirect}
	return f
}

// transport has one http.Transport per scheme, each with its own dial rules.
type transport map[string]*http.Transport

func newTransport(cfg Config) transport {
	t := transport{}
	for _, scheme := range []string{"http", "https"} {
		dialer := &net.Dialer{Timeout: 5 * time.Second, Resolver: cfg.Resolver, Control: cfg.Targets.Control(scheme)}
		t[scheme] = &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
			TLSHandshakeTimeout:    5 * time.Second,
			DisableCompression:     true, // images are already compressed; avoids decompression bombs
			MaxResponseHeaderBytes: maxHeader,
			DisableKeepAlives:      true,
			ForceAttemptHTTP2:      true,
		}
	}
	return t
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	by := t[r.URL.Scheme]
	if by == nil {
		return nil, ErrNoImage
	}
	return by.RoundTrip(r)
}

// redirect checks the target of a redirect.
func (f *Fetcher) redirect(r *http.Request, before []*http.Request) error {
	if len(before) > maxRedirects {
		return fmt.Errorf("too many redirects: %w", ErrNoImage)
	}
	r.Header.Del("Referer")
	r.URL.Fragment = ""
	return f.secured(r.Context(), r.URL)
}

// secured changes u from http to https if plain http is not allowed there. It
// returns an error if neither is allowed.
func (f *Fetcher) secured(ctx context.Context, u *url.URL) error {
	err := f.targets.Check(ctx, u.String())
	if err == nil || u.Scheme != "http" || u.Port() != "" && u.Port() != "80" {
		return err
	}
	u.Scheme, u.Host = "https", u.Hostname()
	if ip := net.ParseIP(u.Host); ip != nil && ip.To4() == nil {
		u.Host = "[" + u.Host + "]"
	}
	return f.targets.Check(ctx, u.String())
}

// Fetch returns the image at a URL. The error is ErrNoImage,
// netguard.ErrRefused or a network error.
func (f *Fetcher) Fetch(ctx context.Context, address string) (Image, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if err := f.slots.Acquire(ctx, 1); err != nil {
		return Image{}, err
	}
	defer f.slots.Release(1)
	u, err := url.Parse(address)
	if err != nil {
		return Image{}, ErrNoImage
	}
	u.Fragment = ""
	if err := f.secured(ctx, u); err != nil {
		return Image{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Image{}, ErrNoImage
	}
	req.Header.Set("Accept", "image/png, image/jpeg, image/gif, image/webp")
	req.Header.Set("User-Agent", "Postroom image proxy")
	res, err := f.client.Do(req)
	if err != nil {
		return Image{}, err
	}
	defer func() { _ = res.Body.Close() }() // read as far as wanted
	if res.StatusCode != http.StatusOK || res.ContentLength > MaxBytes {
		return Image{}, fmt.Errorf("status %d, %d bytes: %w", res.StatusCode, res.ContentLength, ErrNoImage)
	}
	return Read(res.Body)
}

// Read reads an image from r. The error is ErrNoImage if it is not a supported
// image or too large, or that of r.
func Read(r io.Reader) (Image, error) {
	body, err := io.ReadAll(io.LimitReader(r, MaxBytes+1))
	if err != nil {
		return Image{}, err
	}
	kind, width, height := measure(body)
	switch {
	case len(body) > MaxBytes:
		return Image{}, fmt.Errorf("over %d bytes: %w", MaxBytes, ErrNoImage)
	case kind == "":
		return Image{}, ErrNoImage
	case width <= 0 || height <= 0 || width > MaxPixels/height:
		return Image{}, fmt.Errorf("%d by %d pixels: %w", width, height, ErrNoImage)
	}
	return Image{kind, body}, nil
}
