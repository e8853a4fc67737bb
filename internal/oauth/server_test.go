package oauth_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/handlers"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/mcp"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/smtp/inbound"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// install is a node with the API, the MCP server, the dashboard and OAuth.
type install struct {
	store *store.Store
	clock *storetest.Clock
	url   string // of this node
	base  string // public
	log   *lines

	account int64
	inbox   store.Inbox
	session string // of a user of the account
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open starts a node for a test that runs beside others, on the engine of the test.
func open(t *testing.T) *install {
	t.Helper()
	t.Parallel()
	return newInstall(t, storetest.Config(t, storetest.Engines(t)[0]))
}

// newInstall starts a node and gives it a user and an inbox.
func newInstall(t *testing.T, cfg store.Config) *install {
	t.Helper()
	in := startNode(t, cfg, storetest.NewClock(time.Now()), "")
	in.account = storetest.Account(t, in.store).Seq
	in.inbox = storetest.Inbox(t, in.store, func(i *store.Inbox) { i.AccountID = in.account })
	in.session = in.newUser(t, in.account, "ann@example.com")
	return in
}

// startNode starts a node whose public URL is base, or its own.
func startNode(t *testing.T, cfg store.Config, clock *storetest.Clock, base string) *install {
	t.Helper()
	cfg.Now = clock.Now
	in := &install{store: storetest.OpenConfig(t, cfg), clock: clock, base: base, log: &lines{}}
	server := httptest.NewUnstartedServer(nil)
	in.url = "http://" + server.Listener.Addr().String()
	if base == "" {
		in.base = in.url
	}
	public, err := url.Parse(in.base)
	must(t, err)
	log := slog.New(slog.NewTextHandler(io.MultiWriter(t.Output(), in.log), nil))
	receiver, err := inbound.NewReceiver(inbound.ReceiverConfig{Store: in.store, Domain: storetest.Domain, TempDir: t.TempDir(), Now: clock.Now})
	must(t, err)
	key := bytes.Repeat([]byte("k"), 32)
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	apps := oauth.New(oauth.Config{Store: in.store, BaseURL: public, KeyPrefix: "sk", TrustedProxies: proxies, Now: clock.Now, Log: log})
	api, err := handlers.New(handlers.Config{
		Config: httpapi.Config{Store: in.store, Now: clock.Now, Log: log, OAuth: apps.Access()}, Incoming: receiver, WebhookTargets: netguard.NewTargets(netguard.New(netguard.Config{}), nil),
		Streams: stream.New(stream.Config{Store: in.store, Render: handlers.EventFrames(in.store), Log: log}), MailDomain: storetest.Domain, BaseURL: public,
		FileKey: key, KeyPrefix: "sk", SendPolicy: store.PolicyOpen, Version: "test", Stopping: make(chan struct{}),
		MCP: func(local http.RoundTripper) (http.Handler, error) {
			return mcp.New(mcp.Config{Local: local, Version: "test", Log: log})
		},
	})
	must(t, err)
	dashboard, err := web.New(web.Config{
		API: api, Store: in.store, EventBody: handlers.EventBody(in.store), BaseURL: public, NoticeKey: bytes.Repeat([]byte("n"), 32), TrustedProxies: proxies,
		OAuth: apps, Now: clock.Now, Log: log,
	})
	must(t, err)
	server.Config.Handler = apps.Handler(dashboard)
	server.Start()
	t.Cleanup(server.Close)
	return in
}

// newUser returns the session of a new user.
func (in *install) newUser(t *testing.T, account int64, name string) string {
	t.Helper()
	link, token := web.NewLink(in.clock.Now())
	_, err := in.store.CreateUser(t.Context(), account, name, store.RoleAdmin, link)
	must(t, err)
	session := name + "'s session"
	_, err = in.store.UseLink(t.Context(), store.HashKey(token), "no password that is known", store.HashKey(session))
	must(t, err)
	return session
}

// response is a response to a request, read in full.
type response struct {
	status int
	header http.Header
	body   string
}

// request sends a request to this node; headers are names and values. It follows no
// redirects.
func (in *install) request(t *testing.T, method, path, body string, headers ...string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, in.url+path, strings.NewReader(body))
	must(t, err)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	must(t, err)
	return response{res.StatusCode, res.Header, string(b)}
}

// want fails the test unless the response has this status and these texts.
func (a response) want(t *testing.T, status int, texts ...string) response {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d:\n%s", a.status, status, a.body)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("the response has no %q:\n%s", text, a.body)
		}
	}
	return a
}

// json returns the members of the response.
func (a response) json(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(a.body), &out); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	return out
}

// text returns a member of the response.
func (a response) text(t *testing.T, name string) string {
	t.Helper()
	s, _ := a.json(t)[name].(string)
	if s == "" {
		t.Fatalf("no %s: %s", name, a.body)
	}
	return s
}

const (
	callback = "https://client.example/callback"
	verifier = "a-verifier-that-is-long-enough-for-pkce-0123456789"
)

func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// register registers an application and returns its id.
func (in *install) register(t *testing.T, name string, redirects ...string) string {
	t.Helper()
	if len(redirects) == 0 {
		redirects = []string{callback}
	}
	b, err := json.Marshal(map[string]any{"client_name": name, "redirect_uris": redirects})
	must(t, err)
	return in.request(t, "POST", "/oauth/register", string(b), "Content-Type", "application/json").want(t, http.StatusCreated).text(t, "client_id")
}

// asks returns the authorization request of an application, with changes: names and
// values, where an empty value removes the parameter.
func (in *install) asks(client string, changes ...string) url.Values {
	q := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {callback}, "code_challenge": {challenge(verifier)}, "code_challenge_method": {"S256"},
		"state": {"a state & more"}, "scope": {"read send"}, "resource": {in.base + "/mcp"},
	}
	return change(q, changes)
}

func change(q url.Values, changes []string) url.Values {
	for i := 0; i+1 < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return q
}

// page opens the consent page as the user.
func (in *install) page(t *testing.T, q url.Values) response {
	t.Helper()
	return in.request(t, "GET", "/oauth/authorize?"+q.Encode(), "", "Cookie", "postroom_session="+in.session)
}

// decide sends the form of the consent page as the user: fields are names and values.
func (in *install) decide(t *testing.T, q url.Values, fields ...string) response {
	t.Helper()
	form := url.Values{"decision": {"approve"}, "preset": {"read"}, "inboxes": {"some"}, "inbox_ids": {in.inbox.ID}, "expires": {"30"}}
	for name, values := range q {
		form[name] = values
	}
	return in.request(t, "POST", "/oauth/authorize", change(form, fields).Encode(), "Cookie", "postroom_session="+in.session,
		"Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin", "Origin", in.base)
}

// query returns the parameters of a redirect.
func (a response) query(t *testing.T) url.Values {
	t.Helper()
	u, err := url.Parse(a.want(t, http.StatusSeeOther).header.Get("Location"))
	must(t, err)
	return u.Query()
}

// code returns an authorization code for an application; fields are of the form.
func (in *install) code(t *testing.T, client string, fields ...string) string {
	t.Helper()
	code := in.decide(t, in.asks(client), fields...).query(t).Get("code")
	if code == "" {
		t.Fatal("no code")
	}
	return code
}

// post sends a form to an endpoint.
func (in *install) post(t *testing.T, path string, q url.Values) response {
	t.Helper()
	return in.request(t, "POST", path, q.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// exchange uses a code, with changes of the parameters.
func (in *install) exchange(t *testing.T, client, code string, changes ...string) response {
	t.Helper()
	return in.post(t, "/oauth/token", change(url.Values{
		"grant_type": {"authorization_code"}, "client_id": {client}, "code": {code}, "code_verifier": {verifier}, "redirect_uri": {callback},
		"resource": {in.base + "/mcp"},
	}, changes))
}

// refresh uses a refresh token.
func (in *install) refresh(t *testing.T, client, token string) response {
	t.Helper()
	return in.post(t, "/oauth/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}})
}

// connect returns the tokens of a new connection.
func (in *install) connect(t *testing.T, client string, fields ...string) (access, refresh string) {
	t.Helper()
	a := in.exchange(t, client, in.code(t, client, fields...)).want(t, http.StatusOK)
	return a.text(t, "access_token"), a.text(t, "refresh_token")
}

// listTools calls the MCP server with a token.
func (in *install) listTools(t *testing.T, token string) response {
	t.Helper()
	return in.request(t, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization", "Bearer "+token,
		"Content-Type", "application/json", "Accept", "application/json, text/event-stream")
}

// applications returns the connected applications of the account.
func (in *install) applications(t *testing.T) []store.Application {
	t.Helper()
	apps, err := in.store.Applications(t.Context(), in.account)
	must(t, err)
	return apps
}
