// Package handlers is the HTTP API: it implements the server that is generated
// from openapi.yaml over the store. One file per resource: request in, store
// call, response out. Errors go back as they are; classify alone knows status
// codes. What the contract can check is checked before a handler is called.
package handlers

import (
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/packed"
	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/store"
)

// Config is what the API needs.
type Config struct {
	Store *store.Store
	// MCP makes the server behind POST /mcp. The requests that it is given have a
	// caller, and what it asks of local is answered by this API as to that caller.
	// nil means that there is no such server.
	MCP func(local http.RoundTripper) (http.Handler, error)
	// Incoming takes mail that is simulated.
	Incoming Incoming
	// Domains are the accounts' own domains.
	Domains *domains.Domains
	// WebhookTargets says where webhooks may be sent.
	WebhookTargets WebhookTargets
	// WebhookTester sends test events to webhook endpoints.
	WebhookTester WebhookTester
	// Streams hands events out to those who listen.
	Streams *stream.Hub
	// StreamPing is after how much silence a stream says that it is there still;
	// 0 means 20 seconds.
	StreamPing time.Duration
	// MailDomain is the install's own mail domain, lower case.
	MailDomain string
	// Hostname is the name that verdicts on received mail are given under.
	Hostname string
	// BaseURL is where clients reach the API: links begin with it.
	BaseURL *url.URL
	// FileKey signs download links.
	FileKey []byte
	// Feedback makes and reads the links that stand in mail; nil means that there
	// are none.
	Feedback *feedback.Signer
	// TrackOpens and TrackClicks say whether the html of emails to one recipient
	// gets a picture that tells of opens, and links that tell of clicks.
	TrackOpens, TrackClicks bool
	// NoFiles says that no download links are given out or served, but those of
	// the blob storage.
	NoFiles bool
	// KeyPrefix is the first part of new keys: "sk".
	KeyPrefix string
	// SendPolicy is what a new inbox gets that asks for none.
	SendPolicy store.SendPolicy
	// TrustedProxies are those whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// RateLimits says whether rate limits are enforced.
	RateLimits bool
	// Version is the program's.
	Version string
	// TempDir is the folder that large request bodies come into; empty means the
	// system's.
	TempDir string
	// Stopping is closed when the service shuts down: waits then answer at once.
	Stopping <-chan struct{}
	// Answered is told the status of every answer; it may be nil.
	Answered func(status int)
	// Now is the clock.
	Now func() time.Time
	// Log takes faults of ours.
	Log *slog.Logger
}

// API implements the generated interfaces.
type API struct {
	cfg     Config
	store   *store.Store
	now     func() time.Time
	log     *slog.Logger
	files   fileSigner
	running runningCalls
	bodies  *semaphore.Weighted
	batches *semaphore.Weighted // of emails, those with large texts
	mcp     http.Handler        // may be nil

	contract *packed.Body // as it is served
	requests *httpapi.Contract

	firstAccount atomic.Int64 // its sequence number; 0 until it is needed
}

var (
	_ gen.Handler         = (*API)(nil)
	_ gen.RawHandler      = (*API)(nil)
	_ gen.SecurityHandler = (*API)(nil)
)

// New returns the API as an http.Handler.
func New(cfg Config) (http.Handler, error) {
	contract, err := contractOf(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	a := &API{
		cfg: cfg, store: cfg.Store, now: cfg.Now, log: cfg.Log,
		files:  fileSigner{cfg.FileKey},
		bodies: semaphore.NewWeighted(maxBodiesInMemory), batches: semaphore.NewWeighted(largeBatches),
		contract: packed.New(contract), requests: httpapi.NewContract(gen.OpenAPI),
	}
	s, err := gen.NewServer(a, a, a,
		gen.WithErrorHandler(a.writeDecodeError),
		gen.WithNotFound(a.routeNotFound),
		gen.WithMethodNotAllowed(a.methodNotAllowed),
		gen.WithMiddleware(a.checkText, a.idempotent))
	if err != nil {
		return nil, err
	}
	api := a.outer(a.links(s))
	if cfg.MCP != nil {
		if a.mcp, err = cfg.MCP(localTransport{api}); err != nil {
			return nil, err
		}
	}
	return api, nil
}
