// Package client speaks to a Postroom server: it makes inboxes, waits for mail,
// sends and answers it, follows events and verifies webhooks.
//
// A Client has a method for each operation of the contract, and some that save
// steps: iterators over lists
// (Messages), waiting for as long as it takes (WaitForCode), downloads, the
// stream of events (Events). What it promises:
//
//   - A call is tried again when the server asks for that (429 rate_limited,
//     503, with Retry-After) or could not be reached or hung up before it
//     answered, a few times and within bounds (WithRetries). A POST is tried
//     again only under an Idempotency-Key; the client makes one up where the
//     operation takes one and none was given, so that nothing is sent twice. A
//     DELETE that was done and whose answer was lost ends with ErrNotFound.
//   - What the server refuses is an *Error, which errors.Is compares with the
//     codes: errors.Is(err, client.ErrNotFound). A limit of the plan is never
//     waited out.
//   - Values, fields and event types that are newer than the client are taken as
//     they come.
//
// A Client may be used by many goroutines.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/postroom/postroom/gen"
)

// Client calls a server with a key. New makes one.
type Client struct {
	api    *gen.Client
	caller *caller
	stream streamTimes
}

// Option changes what New makes.
type Option func(*caller)

// WithHTTPClient has calls made by h, for a proxy or certificates of one's own.
// Its redirect policy is not used: the API redirects nowhere but to downloads. A
// Timeout shorter than two minutes cuts waits off, and any breaks streams of
// events, which are opened again.
func WithHTTPClient(h *http.Client) Option {
	return func(c *caller) {
		own := *h
		c.http = &own
	}
}

// WithRetries bounds how often a call is tried, the first time included, and for
// how long after its start it may be tried again. The default is 4 tries in 90
// seconds; 1 means never again.
func WithRetries(tries int, within time.Duration) Option {
	return func(c *caller) { c.tries, c.within = max(1, tries), within }
}

// WithUserAgent names the program in the User-Agent header.
func WithUserAgent(name string) Option {
	return func(c *caller) { c.agent = name }
}

// New returns a client of the server at baseURL, such as
// https://mail.example.com, which may have a path but not the /v1 of the
// operations. It makes no call: a wrong key shows at the first one.
func New(baseURL, key string, opts ...Option) (*Client, error) {
	base, err := parseBase(baseURL)
	if err != nil {
		return nil, err
	}
	if key = strings.TrimSpace(key); key == "" {
		return nil, errors.New("postroom: the key is empty")
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("postroom: the key has characters that no key has")
	}
	c := newCaller(base)
	for _, opt := range opts {
		opt(c)
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	api, err := gen.NewClient(base.String(), bearer(key), gen.WithClient(c))
	if err != nil {
		return nil, fmt.Errorf("postroom: %w", err)
	}
	return &Client{api: api, caller: c, stream: defaultStreamTimes}, nil
}

// parseBase checks the address of a server. Its errors do not show what may be a
// password.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(strings.TrimSpace(text), "/"))
	switch {
	case err != nil:
		return nil, errors.New("postroom: the server's address is not a URL such as https://mail.example.com")
	case u.User != nil:
		return nil, errors.New("postroom: the server's address has a user in it: the key is given by itself")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("postroom: %q is not the address of a server, such as https://mail.example.com", text)
	case strings.HasSuffix(u.Path, "/v1"):
		return nil, fmt.Errorf("postroom: leave /v1 out of the server's address %q", text)
	}
	return u, nil
}

// bearer is a key as the generated client wants it.
type bearer string

// BearerAuth implements gen.SecuritySource.
func (b bearer) BearerAuth(context.Context, gen.OperationName) (gen.BearerAuth, error) {
	return gen.BearerAuth{Token: string(b)}, nil
}

// newTransport is the default one with bounds: a server that is not there is
// given up after 10 seconds, and an answer is begun within the longest wait and
// half a minute.
func newTransport() http.RoundTripper {
	d, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program has put its own there
		return http.DefaultTransport
	}
	t := d.Clone()
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.ResponseHeaderTimeout = maxWait + 30*time.Second
	return t
}
