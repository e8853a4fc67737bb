package handlers_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/contractcheck"
	"github.com/postroom/postroom/internal/dropin"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// mailDomain is the mail domain of the installation in these tests.
const mailDomain = "mail.example"

// begin is the start time of the servers' clocks.
var begin = time.Date(2026, 9, 23, 10, 0, 0, 0, time.UTC)

// checker is shared: parsing the contract takes longer than most tests.
var checker = sync.OnceValues(func() (*contractcheck.Checker, error) {
	doc, err := contractcheck.Load("../gen/openapi.json")
	if err != nil {
		return nil, err
	}
	return contractcheck.New(doc)
})

// server is the API with a real store and socket, an account, and a key with
// all scopes.
type server struct {
	url      string
	database string // connection string or path of the store
	store    *store.Store
	clock    *storetest.Clock
	account  int64
	key      string
	check    *contractcheck.Checker
	stopping chan struct{}
	service  *handlers.Service
	// endStreams ends the event streams, like a shutdown.
	endStreams func()
	web        *httptest.Server

	waits, waited atomic.Int64 // begun and ended
	waitContext   atomic.Value // func(context.Context) context.Context, for waits
}

// serve starts a server for a test that runs beside others, on the engine of the test
// (storetest.Engines).
func serve(t *testing.T, edits ...func(*handlers.Config)) *server {
	t.Helper()
	return serveStore(t, nil, edits...)
}

// serveStore is serve with a different way to open the store.
func serveStore(t *testing.T, opts []storetest.Option, edits ...func(*handlers.Config)) *server {
	t.Helper()
	t.Parallel()
	clock := storetest.NewClock(begin)
	cfg := storetest.Config(t, storetest.Engines(t)[0], opts...)
	cfg.Now = clock.Now
	s := newServer(t, storetest.OpenConfig(t, cfg), clock, edits...)
	s.database = cfg.Database
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newFeedback returns a signer for links in mail.
func newFeedback(t testing.TB) *feedback.Signer {
	t.Helper()
	s, err := feedback.NewSigner(bytes.Repeat([]byte("k"), 32))
	must(t, err)
	return s
}

// newServer starts a server over the store.
func newServer(t *testing.T, st *store.Store, clock *storetest.Clock, edits ...func(*handlers.Config)) *server {
	t.Helper()
	check, err := checker()
	must(t, err)
	s := &server{store: st, clock: clock, check: check, stopping: make(chan struct{})}
	s.web = httptest.NewUnstartedServer(nil)
	s.url = "http://" + s.web.Listener.Addr().String()
	base, err := url.Parse(s.url)
	must(t, err)
	receiver, err := inbound.NewReceiver(inbound.ReceiverConfig{Store: st, Domain: mailDomain, TempDir: t.TempDir(), Now: clock.Now})
	must(t, err)
	cfg := handlers.Config{
		Config: httpapi.Config{Store: st, Now: clock.Now, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}, Incoming: receiver, Domains: newDomains(t, st, outbound.NewResolver("127.0.0.1:9")), WebhookTargets: anyTarget{}, WebhookTester: stubTester{st}, MailDomain: mailDomain, Hostname: "mx.in.example", BaseURL: base, FileKey: bytes.Repeat([]byte("f"), 32), Feedback: newFeedback(t), KeyPrefix: "sk",
		SendPolicy: store.PolicyOpen, Version: "test", Stopping: s.stopping,
	}
	cfg.Streams = stream.New(stream.Config{Store: st, Render: handlers.EventFrames(st), Log: cfg.Log})
	for _, edit := range edits {
		edit(&cfg)
	}
	runStreams(t, cfg.Streams, s)
	api, err := handlers.New(cfg)
	must(t, err)
	s.service = api
	s.web.Config.Handler = s.countWaits(dropin.Handler(dropin.Config{
		Names: []string{"mailosaur", "resend"}, Front: api.Front,
		API: vendorapi.API{Handler: api, BaseURL: s.url, Version: cfg.Version, Log: cfg.Log},
	}, api))
	s.web.Start()
	t.Cleanup(s.web.Close)
	if tr, ok := s.web.Client().Transport.(*http.Transport); ok {
		tr.MaxIdleConnsPerHost = 2000
	}
	s.account = storetest.Account(t, st).Seq
	s.key = s.newKey(t)
	return s
}

// startNodes starts a server on cfg and, on PostgreSQL, more on the same database until there are
// n: SQLite belongs to one process.
func startNodes(t *testing.T, cfg store.Config, n int, edits ...func(*handlers.Config)) (nodes []*server) {
	t.Helper()
	clock := storetest.NewClock(begin)
	cfg.Now = clock.Now
	for len(nodes) == 0 || nodes[0].store.Engine() == string(storetest.PostgreSQL) && len(nodes) < n {
		s := newServer(t, storetest.OpenConfig(t, cfg), clock, edits...)
		s.database = cfg.Database
		if len(nodes) > 0 {
			s.account, s.key = nodes[0].account, nodes[0].key
		}
		nodes = append(nodes, s)
	}
	return nodes
}

// response is a response with its whole body.
type response struct {
	status int
	header http.Header
	body   []byte
}

// option changes a request before it is sent.
type option func(*http.Request) *http.Request

// as sends a request with another key, or without one if key is empty.
func as(key string) option {
	return func(r *http.Request) *http.Request {
		r.Header.Del("Authorization")
		if key != "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
		return r
	}
}

func with(header, value string) option {
	return func(r *http.Request) *http.Request {
		r.Header.Set(header, value)
		return r
	}
}

// broken marks a request that violates the contract on purpose.
func broken(r *http.Request) *http.Request { return r.WithContext(contractcheck.Broken(r.Context())) }

// brokenIf is for tables: requests that expect an error may violate the
// contract.
func brokenIf(status int) option {
	return func(r *http.Request) *http.Request {
		switch status {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
			return broken(r)
		}
		return r
	}
}

// do sends one request, with a body if it is not empty, and validates the
// exchange against the contract.
func (s *server) do(t *testing.T, method, path, body string, opts ...option) response {
	t.Helper()
	res, err := s.try(t.Context(), t, method, path, body, opts...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return res
}

// try is do for requests that may get no response.
func (s *server) try(ctx context.Context, t *testing.T, method, path, body string, opts ...option) (response, error) {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, content)
	if err != nil {
		return response{}, err
	}
	req.Header.Set("Authorization", "Bearer "+s.key)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, opt := range opts {
		req = opt(req)
	}
	return s.send(t, req)
}

func (s *server) send(t *testing.T, req *http.Request) (response, error) {
	t.Helper()
	client := &http.Client{
		Transport:     s.check.Transport(t, s.web.Client().Transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if strings.HasPrefix(req.URL.Path, "/resend/") || strings.HasPrefix(req.URL.Path, "/mailosaur/") { // a vendor has a contract of its own
		client.Transport = s.web.Client().Transport
	}
	res, err := client.Do(req)
	if err != nil {
		return response{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, b}, err
}
