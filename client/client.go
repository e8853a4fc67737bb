// Package client calls a Postroom server: it creates inboxes, waits for
// messages, sends and replies, follows events and verifies webhooks.
//
// A Client has a method for each operation of the API and some for common
// tasks: iterators over lists (Messages), waits of any length (WaitForCode),
// downloads (Download) and the event stream (Events).
//
//   - The client retries a call if the server asks for it (429 rate_limited or
//     503, with Retry-After), cannot be reached, or disconnects before it
//     responds. WithRetries sets the limits. The client retries a POST only with
//     an Idempotency-Key, which it adds where the operation accepts one, so that
//     nothing is sent twice. A DELETE that succeeded without a response may end
//     with ErrNotFound.
//   - Error responses are an *Error. Compare its code with errors.Is:
//     errors.Is(err, client.ErrNotFound). The client does not retry after a limit
//     of the plan.
//   - The client accepts values, fields and event types that are newer than
//     itself.
//
// A Client is safe for concurrent use.
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

// Client calls a server with a key. New creates one. The embedded client has a method for
// each operation of the API, such as CreateInbox; some have a simpler form here.
type Client struct {
	*gen.Client

	caller *caller
	stream streamTimes
	taken  taken
}

// Option configures a Client.
type Option func(*caller)

// WithHTTPClient makes calls with h, for example to use a proxy or special
// certificates. Its redirect policy is ignored: the API redirects only to
// downloads. A Timeout below two minutes interrupts waits, and any Timeout
// interrupts event streams, which reconnect.
func WithHTTPClient(h *http.Client) Option {
	return func(c *caller) {
		own := *h
		c.http = &own
	}
}

// WithRetries limits the attempts of a call, including the first one, and the
// time after its start in which it may be retried. The default is 4 attempts in
// 90 seconds. 1 disables retries.
func WithRetries(tries int, within time.Duration) Option {
	return func(c *caller) { c.tries, c.within = max(1, tries), within }
}

// WithUserAgent sets the User-Agent header.
func WithUserAgent(name string) Option {
	return func(c *caller) { c.agent = name }
}

// New returns a client of the server at baseURL, such as
// https://mail.example.com. The URL may have a path, but without the /v1 of the
// operations. New makes no call, so only the first call reports an invalid key.
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
	return &Client{Client: api, caller: c, stream: defaultStreamTimes}, nil
}

// parseBase checks the URL of a server. Its errors never show a password.
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

// bearer passes the key to the generated client.
type bearer string

// BearerAuth implements gen.SecuritySource.
func (b bearer) BearerAuth(context.Context, gen.OperationName) (gen.BearerAuth, error) {
	return gen.BearerAuth{Token: string(b)}, nil
}

// newTransport returns the default transport with timeouts: 10 seconds to
// connect, and the longest wait plus 30 seconds until the response begins.
func newTransport() http.RoundTripper {
	d, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program has replaced it
		return http.DefaultTransport
	}
	t := d.Clone()
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	t.ResponseHeaderTimeout = maxWait + 30*time.Second
	return t
}
