package web_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/approval"
	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/internal/webhook"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/smtp/outbound"
	"github.com/postroom/postroom/smtp/queue"
	"github.com/postroom/postroom/smtp/smtptest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// site is the dashboard and the API over a real store and socket, with a
// signed-in user.
type site struct {
	url       string
	store     *store.Store
	clock     *storetest.Clock
	api       *gen.Client // without the dashboard
	dns       *smtptest.ChangingDNS
	hooks     *webhook.Dispatcher // RunOnce delivers
	dashboard http.Handler
	service   http.Handler    // the API
	links     *approval.Links // of the emails to approvers
	apps      *oauth.Server

	account int64
	user    store.User
	session string // the token of the user's session
}

// options are how a site differs from the usual one.
type options struct {
	base    string // where people reach it, when that is elsewhere
	proxies []netip.Prefix
	before  func(api http.Handler) http.Handler // what the dashboard calls in its place
	undo    time.Duration                       // how long an approval can be undone
	// approvers get emails about drafts.
	approvers []string
}

// openSite starts a site for a test that runs beside others, on the engine of the test.
func openSite(t *testing.T, opts ...options) *site {
	t.Helper()
	t.Parallel()
	return newSite(t, storetest.Config(t, storetest.Engines(t)[0]), opts...)
}

// openSQLite is openSite on SQLite: for what the database has no part in.
func openSQLite(t *testing.T, opts ...options) *site {
	t.Helper()
	t.Parallel()
	return newSite(t, storetest.Config(t, storetest.SQLite), opts...)
}

// newSite starts a site on the store of cfg. Its clock begins with the real time,
// for browsers have their own about cookies.
func newSite(t *testing.T, cfg store.Config, opts ...options) *site {
	t.Helper()
	var o options
	if len(opts) > 0 {
		o = opts[0]
	}
	s := startSite(t, cfg, storetest.NewClock(time.Now()), o)
	s.account = storetest.Account(t, s.store).Seq
	s.user, s.session = s.newUser(t, "ann@example.com")
	return s
}

func startSite(t *testing.T, cfg store.Config, clock *storetest.Clock, o options) *site {
	t.Helper()
	cfg.Now = clock.Now
	s := &site{store: storetest.OpenConfig(t, cfg), clock: clock, dns: smtptest.NewChangingDNS(t)}
	s.dns.Set(t, smtptest.Zones{})
	server := httptest.NewUnstartedServer(nil)
	s.url = "http://" + server.Listener.Addr().String()
	base, err := url.Parse(s.url)
	if err == nil && o.base != "" {
		base, err = url.Parse(o.base)
	}
	must(t, err)
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	s.links, err = approval.NewLinks(bytes.Repeat([]byte("a"), 32), base, o.approvers)
	must(t, err)
	api := s.newAPI(t, base, log, o.undo)
	s.service = api
	s.api, err = httpapi.NewLocalClient(api)
	must(t, err)
	if o.before != nil {
		api = o.before(api)
	}
	s.apps = oauth.New(oauth.Config{Store: s.store, BaseURL: base, KeyPrefix: "sk", TrustedProxies: o.proxies, Now: clock.Now, Log: log})
	s.dashboard, err = web.New(web.Config{
		API: api, Store: s.store, EventBody: handlers.EventBody(s.store), BaseURL: base, NoticeKey: bytes.Repeat([]byte("n"), 32), TrustedProxies: o.proxies, Now: clock.Now, Log: log,
		Undo: o.undo, Approvals: s.links, OAuth: s.apps,
		System: testSystem(clock),
	})
	must(t, err)
	server.Config.Handler = s.apps.Handler(s.dashboard)
	server.Start()
	t.Cleanup(server.Close)
	return s
}

// testSystem describes an installation with checks of every result.
func testSystem(clock *storetest.Clock) *web.System {
	return &web.System{
		Version: "1.2.3-test", EmailRetention: 30 * 24 * time.Hour,
		Settings: []web.Setting{{Name: "POSTROOM_MAIL_DOMAIN", Value: storetest.Domain, Source: "environment"}},
		Check: func(context.Context) (doctor.Report, error) {
			return doctor.Report{Status: doctor.Fail, CheckedAt: clock.Now(), Results: []doctor.Result{
				{Check: "database", Status: doctor.OK, Saw: "schema up to date"},
				{Check: "MX record", Subject: storetest.Domain, Status: doctor.Fail, Saw: "no MX record", Do: []string{"publish: " + storetest.Domain + ". MX 10 mx." + storetest.Domain + "."}},
				{Check: "settings", Status: doctor.Warn, Saw: "POSTROOM_BASE_URL is not set"}, {Check: "relay", Status: doctor.Skipped, Saw: "no relay"},
			}}, nil
		},
	}
}

// newNode starts another site over the database of s.
func newNode(t *testing.T, cfg store.Config, s *site, o options) *site {
	t.Helper()
	n := startSite(t, cfg, s.clock, o)
	n.account, n.user, n.session = s.account, s.user, s.session
	return n
}

// newAPI makes the API with everything that it needs: its webhooks may be sent to
// this machine.
func (s *site) newAPI(t *testing.T, base *url.URL, log *slog.Logger, undo time.Duration) http.Handler {
	t.Helper()
	key := bytes.Repeat([]byte("k"), 32)
	signer, err := feedback.NewSigner(key)
	must(t, err)
	receiver, err := inbound.NewReceiver(inbound.ReceiverConfig{Store: s.store, Domain: storetest.Domain, TempDir: t.TempDir(), Now: s.clock.Now})
	must(t, err)
	owned, err := domains.New(domains.Config{
		Store: s.store, Resolver: outbound.NewResolver(s.dns.Addr()), MailDomain: storetest.Domain, Hostname: "mx." + storetest.Domain,
		TokenKey: key, NewKeys: queue.NewKeys, Log: log,
	})
	must(t, err)
	targets := netguard.NewTargets(netguard.New(netguard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), nil)
	s.hooks, err = webhook.New(webhook.Config{
		Store: s.store, Body: handlers.EventBody(s.store), Targets: targets, Agent: "Postroom/test", Now: s.clock.Now, Log: log,
	})
	must(t, err)
	streams := stream.New(stream.Config{Store: s.store, Render: handlers.EventFrames(s.store), Log: log})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = streams.Run(ctx) }) // it returns nil
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	api, err := handlers.New(handlers.Config{
		Config: httpapi.Config{Store: s.store, RateLimits: true, Now: s.clock.Now, Log: log}, Incoming: receiver, Domains: owned, WebhookTargets: targets, WebhookTester: s.hooks, Streams: streams,
		MailDomain: storetest.Domain, Hostname: "mx." + storetest.Domain, BaseURL: base, FileKey: key, Feedback: signer, KeyPrefix: "sk",
		SendPolicy: store.PolicyOpen, Undo: undo, Version: "test", Stopping: make(chan struct{}),
	})
	must(t, err)
	return api
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newUser creates a signed-in user of the site's account.
func (s *site) newUser(t *testing.T, name string) (u store.User, session string) {
	t.Helper()
	link, token := web.NewLink(s.clock.Now())
	_, err := s.store.CreateUser(t.Context(), s.account, name, store.RoleAdmin, link)
	must(t, err)
	session = name + "'s session"
	u, err = s.store.UseLink(t.Context(), store.HashKey(token), "no password that is known", store.HashKey(session))
	must(t, err)
	return u, session
}

// otherAccount makes the site's user one of another account.
func (s *site) otherAccount(t *testing.T) {
	t.Helper()
	s.account = storetest.Account(t, s.store).Seq
	s.user, s.session = s.newUser(t, "eve@example.com")
}

// asUser is a context in which s.api is called by the user.
func (s *site) asUser(t *testing.T) context.Context {
	t.Helper()
	return httpapi.AsPerson(t.Context(), httpapi.Person{
		Seq: s.user.Seq, AccountID: s.account, ID: s.user.ID, Role: store.RoleAdmin, StillSignedIn: func(context.Context) error { return nil },
	})
}

// visitor is a browser without a screen or scripts.
type visitor struct {
	t      *testing.T
	site   *site
	client *http.Client
}

// visit returns one that is not signed in.
func (s *site) visit(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	return &visitor{t, s, &http.Client{
		Jar: jar, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// visitAsUser returns one that is signed in as the user.
func (s *site) visitAsUser(t *testing.T) *visitor {
	t.Helper()
	return s.visitWith(t, s.session)
}

// visitWith returns one that has the token of a session.
func (s *site) visitWith(t *testing.T, session string) *visitor {
	t.Helper()
	v := s.visit(t)
	u, err := url.Parse(s.url)
	must(t, err)
	v.client.Jar.SetCookies(u, []*http.Cookie{{Name: "postroom_session", Value: session, Path: "/"}}) //nolint:gosec // the site is one by http
	return v
}

// response is the response that a visitor got.
type response struct {
	status int
	header http.Header
	body   string
}

// get asks for a page; headers are names and values.
func (v *visitor) get(path string, headers ...string) response {
	v.t.Helper()
	return v.do(http.MethodGet, path, "", headers)
}

// post sends a form of names and values.
func (v *visitor) post(path string, fields []string, headers ...string) response {
	v.t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	return v.do(http.MethodPost, path, form.Encode(), headers)
}

func (v *visitor) do(method, path, body string, headers []string) response {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.site.url+path, strings.NewReader(body))
	must(v.t, err)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := v.client.Do(req)
	must(v.t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	must(v.t, err)
	return response{res.StatusCode, res.Header, string(b)}
}

// want fails the test unless the response has this status.
func (a response) want(t *testing.T, status int) response {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d:\n%s", a.status, status, a.body)
	}
	return a
}

// has fails unless the page holds all of these.
func (a response) has(t *testing.T, texts ...string) response {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("the page has no %q:\n%s", text, a.body)
		}
	}
	return a
}
