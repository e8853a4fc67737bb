package webhook

import (
	"context"
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"

	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/store"
)

// Config is what a Dispatcher needs. Store, Body and Targets are required.
type Config struct {
	// Store holds events, endpoints and deliveries.
	Store *store.Store
	// Body is what an endpoint is sent of an event: the JSON that the contract
	// describes. store.ErrNotFound means that what it is about is deleted.
	Body func(ctx context.Context, e store.Event) ([]byte, error)
	// Targets says where we may connect to.
	Targets *netguard.Targets
	// Resolver finds the addresses of endpoints when they are dialled; nil means
	// the system's.
	Resolver *net.Resolver
	// RootCAs are who may have signed the endpoints' certificates; nil means those
	// that the system trusts.
	RootCAs *x509.CertPool
	// Agent is what we call ourselves; empty means Postroom.
	Agent string
	// MaxEndpoints is how many endpoints are served at the same time, of which at
	// most half may be ones that fail or are slow; 0 means 128.
	MaxEndpoints int
	// PerEndpoint is how many deliveries one endpoint gets at the same time, one
	// that fails getting them one by one; 0 means 8.
	PerEndpoint int
	// Timeout is how long an attempt may take; 0 means 10 seconds. An endpoint that
	// takes a fifth of it is slow.
	Timeout time.Duration
	// Lease is for how long a claimed delivery is ours alone; 0 means 6 times
	// Timeout. After a crash it is how long a delivery that was under way waits.
	Lease time.Duration
	// Grace is how long Run waits for attempts when it is told to end; 0 means
	// Timeout.
	Grace time.Duration
	// Jitter returns a number from -1 to 1 for each pause; nil means a random one.
	Jitter func() float64
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log takes every attempt that fails; nil means slog.Default().
	Log *slog.Logger
}

func (c *Config) setDefaults() {
	setDefault(&c.Agent, "Postroom")
	setDefault(&c.MaxEndpoints, 128)
	setDefault(&c.PerEndpoint, 8)
	setDefault(&c.Timeout, 10*time.Second)
	setDefault(&c.Lease, 6*c.Timeout)
	setDefault(&c.Grace, c.Timeout)
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

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
