package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/store"
)

// AttemptReport describes a request to an endpoint.
type AttemptReport struct {
	Event  store.Event
	Status int  // of the response; 0 if there is none
	Taken  bool // by the endpoint
	Began  time.Time
	// Lag is the time since the event.
	Lag time.Duration
}

// Config configures a Dispatcher. Store, Body and Targets are required.
type Config struct {
	// Store holds events, endpoints and deliveries.
	Store *store.Store
	// Body returns the request body for an event: JSON as the API contract
	// describes it. store.ErrNotFound means that the subject of the event is
	// deleted.
	Body func(ctx context.Context, e store.Event) ([]byte, error)
	// Shape converts a body for an endpoint in the form of a vendor, and returns the prefix
	// of the names of the signature's header fields, such as Svix. Nil means that there is
	// no such endpoint.
	Shape func(format string, body []byte) (shaped []byte, prefix string, err error)
	// Targets decides which addresses may be connected to.
	Targets *netguard.Targets
	// Resolver resolves the endpoints' host names; nil means the system's
	// resolver.
	Resolver *net.Resolver
	// RootCAs are the trusted certificate authorities; nil means the system's.
	RootCAs *x509.CertPool
	// Agent is the User-Agent; empty means Postroom.
	Agent string
	// MaxPosts is the maximum number of concurrent deliveries of one account; 0 means
	// 256. At most half of them may be to endpoints that fail or are slow. All
	// accounts together may have half as many more.
	MaxPosts int
	// PerEndpoint is the maximum number of concurrent deliveries per endpoint;
	// 0 means 8. A failing endpoint gets one at a time.
	PerEndpoint int
	// Timeout limits one attempt; 0 means 10 seconds. An endpoint that takes
	// more than a fifth of it is slow.
	Timeout time.Duration
	// Lease is how long a claim lasts; 0 means 6 times Timeout. Run renews it. After
	// a crash, a claimed delivery waits this long.
	Lease time.Duration
	// Grace is how long Run waits for attempts at shutdown; 0 means Timeout.
	Grace time.Duration
	// Jitter returns a number from -1 to 1 for each delay; nil means a random
	// one.
	Jitter func() float64
	// OnAttempt, if not nil, is called after each request to an endpoint.
	OnAttempt func(AttemptReport)
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log receives every failed attempt; nil means slog.Default().
	Log *slog.Logger
}

func (c *Config) setDefaults() {
	c.Agent = cmp.Or(c.Agent, "Postroom")
	c.MaxPosts = cmp.Or(c.MaxPosts, 256)
	c.PerEndpoint = cmp.Or(c.PerEndpoint, 8)
	c.Timeout = cmp.Or(c.Timeout, 10*time.Second)
	c.Lease = cmp.Or(c.Lease, 6*c.Timeout)
	c.Grace = cmp.Or(c.Grace, c.Timeout)
	if c.Jitter == nil {
		c.Jitter = func() float64 { return 2*rand.Float64() - 1 } //nolint:gosec // no secret
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
}
