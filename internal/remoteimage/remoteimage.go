// Package remoteimage fetches the remote images of a message when a user asks to
// see them. The sender learns that the message was opened and nothing else: not the
// address or the browser of the user, and the request carries no cookie.
//
// An unknown sender chooses the addresses. They are checked like webhook endpoints:
// when requested, at each redirect, and when connected. Only https to public
// addresses is allowed, and what else the operator allows. Plain http becomes
// https. The result is a bitmap image or nothing. The first bytes decide its
// type, and its size, its number of pixels and the time are limited.
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
	// MaxBytes is the largest image.
	MaxBytes = 4 << 20
	// MaxPixels is how many pixels an image may have.
	MaxPixels = 40 << 20
	// DefaultTimeout is how long one may take.
	DefaultTimeout = 10 * time.Second
	// atOnce is how many are fetched at the same time: that, times MaxBytes, is the
	// memory it takes. Others wait their turn.
	atOnce       = 8
	maxRedirects = 3
	maxHeader    = 32 << 10
)

// ErrNoImage means that the address does not lead to an image that can be shown.
var ErrNoImage = errors.New("no image that can be shown")

// Targets judges addresses. netguard.Targets is one.
type Targets interface {
	Check(ctx context.Context, url string) error
	Control(scheme string) func(network, address string, _ syscall.RawConn) error
}

// Config says how to fetch. Targets is required.
type Config struct {
	Targets Targets
	// Resolver finds the addresses of names; nil means the system's.
	Resolver *net.Resolver
	// RootCAs are those whose certificates count; nil means the system's.
	RootCAs *x509.CertPool
	// Timeout is how long an image may take; 0 means DefaultTimeout.
	Timeout time.Duration
}

// Image is one that can be shown.
type Image struct {
	Type string // image/png, image/gif, image/jpeg or image/webp
	Body []byte
}

// Fetcher fetches images. It is safe for use by many goroutines.
type Fetcher struct {
	targets Targets
	client  *http.Client
	timeout time.Duration
	slots   *semaphore.Weighted
}

// New returns a fetcher.
func New(cfg Config) *Fetcher {
	f := &Fetcher{targets: cfg.Targets, timeout: cfg.Timeout, slots: semaphore.NewWeighted(atOnce)}
	if f.timeout == 0 {
		f.timeout = DefaultTimeout
	}
	f.client = &http.Client{Transport: newTransport(cfg), CheckRedirect: f.redirect}
	return f
}

// transport dials by what may be reached with the scheme of a request.
type transport map[string]*http.Transport

func newTransport(cfg Config) transport {
	t := transport{}
	for _, scheme := range []string{"http", "https"} {
		dialer := &net.Dialer{Timeout: 5 * time.Second, Resolver: cfg.Resolver, Control: cfg.Targets.Control(scheme)}
		t[scheme] = &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
			TLSHandshakeTimeout:    5 * time.Second,
			DisableCompression:     true, // an image is packed already, and a bomb is not unpacked
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

// redirect judges where an image has moved to.
func (f *Fetcher) redirect(r *http.Request, before []*http.Request) error {
	if len(before) > maxRedirects {
		return fmt.Errorf("too many redirects: %w", ErrNoImage)
	}
	r.Header.Del("Referer")
	r.URL.Fragment = ""
	return f.secured(r.Context(), r.URL)
}

// secured makes plain http into https wherever plain http may not go, and returns
// an error when nothing may.
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

// Fetch returns the image at an address of the web. The error is ErrNoImage,
// netguard.ErrRefused, or that of the network.
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

// Read reads an image from r. The error is ErrNoImage when it is none, or too
// large, and else that of r.
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
