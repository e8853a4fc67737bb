package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/gen"
)

// testServer responds to requests with the given handlers, one after the other,
// and records the requests.
type testServer struct {
	*httptest.Server
	responses []http.HandlerFunc
	rest      http.HandlerFunc // handles all further requests
	mu        sync.Mutex
	asked     []*http.Request
	bodies    []string
}

func newTestServer(t *testing.T, responses ...http.HandlerFunc) *testServer {
	t.Helper()
	s := &testServer{responses: responses, rest: respond(http.StatusTeapot, `{}`)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	s.Config.SetKeepAlivesEnabled(false) // otherwise net/http would retry
	t.Cleanup(s.Close)
	return s
}

func (s *testServer) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // the test compares what was read
	s.mu.Lock()
	s.asked, s.bodies = append(s.asked, r), append(s.bodies, string(body))
	n := len(s.asked) - 1
	s.mu.Unlock()
	if n >= len(s.responses) {
		s.rest(w, r)
		return
	}
	s.responses[n](w, r)
}

// requests returns the requests so far.
func (s *testServer) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// respond returns a handler that sends a JSON response. header contains pairs of name
// and value.
func respond(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // some tests want the client to disconnect
	}
}

func refusal(status int, code Code, header ...string) http.HandlerFunc {
	return respond(status, `{"error":{"code":"`+string(code)+`","message":"no","request_id":"req_1"}}`, header...)
}

// hangUp closes the connection before a response or after its header.
func hangUp(head string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err) // the test's own server supports it
		}
		_, _ = io.WriteString(conn, head)
		if tcp, ok := conn.(*net.TCPConn); ok && head == "" {
			_ = tcp.SetLinger(0) // causes a reset
		}
		_ = conn.Close()
	}
}

const inboxJSON = `{"object":"inbox","id":"ibx_1","address":"a@b.example","name":"a","domain":"b.example","display_name":null,"send_policy":"open",
	"status":"active","retention_days":7,"metadata":{},"expires_at":null,"limits":null,"aliases":[],"catch_all":false,"quarantine":null,"last_message_at":null,"created_at":"2026-01-02T03:04:05.000Z","updated_at":"2026-01-02T03:04:05.000Z"}`

// napper is a clock that advances with each sleep.
type napper struct {
	mu   sync.Mutex
	at   time.Time
	naps []time.Duration
}

func (n *napper) now() time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.at
}

func (n *napper) sleep(ctx context.Context, d time.Duration) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at, n.naps = n.at.Add(d), append(n.naps, d)
	return ctx.Err()
}

// newTestClient returns a client whose pauses take no time.
func newTestClient(t *testing.T, address string, opts ...Option) (*Client, *napper) {
	t.Helper()
	c, err := New(address, "sk_test_1", opts...)
	must(t, err)
	n := &napper{at: time.Now()}
	c.caller.now, c.caller.sleep = n.now, n.sleep
	return c, n
}

func getInbox(c *Client) error {
	_, err := c.GetInbox(context.Background(), gen.GetInboxParams{InboxID: "ibx_1"})
	return err
}

func makeInbox(c *Client) error {
	_, err := c.NewInbox(context.Background(), gen.InboxCreate{Name: Text("a")})
	return err
}

func makeKey(c *Client) error {
	_, err := c.CreateKey(context.Background(), &gen.ApiKeyCreate{Name: "k"})
	return err
}

func TestCallsAreTriedAgain(t *testing.T) {
	t.Parallel()
	ok, made := respond(http.StatusOK, inboxJSON), respond(http.StatusCreated, inboxJSON)
	tests := []struct {
		name      string
		call      func(*Client) error
		responses []http.HandlerFunc
		tries     int
		want      error // nil if it finally succeeds
	}{
		{"after too many requests", getInbox, []http.HandlerFunc{refusal(429, ErrRateLimited, "Retry-After", "17"), ok}, 2, nil},
		{"while the server starts", getInbox, []http.HandlerFunc{refusal(503, ErrUnavailable), refusal(503, ErrUnavailable), ok}, 3, nil},
		{"while a proxy cannot reach the server", getInbox, []http.HandlerFunc{respond(502, "<h1>Bad Gateway</h1>", "Content-Type", "text/html"), ok}, 2, nil},
		{"after a reset", getInbox, []http.HandlerFunc{hangUp(""), ok}, 2, nil},
		{"after an incomplete response", getInbox, []http.HandlerFunc{hangUp("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"), ok}, 2, nil},
		{"a send after a reset", makeInbox, []http.HandlerFunc{hangUp(""), made}, 2, nil},
		{"a send whose first attempt is in progress", makeInbox, []http.HandlerFunc{hangUp(""), refusal(409, ErrIdempotencyInProgress, "Retry-After", "1"), made}, 3, nil},
		{"at most four attempts", getInbox, []http.HandlerFunc{refusal(503, ErrUnavailable), refusal(503, ErrUnavailable), refusal(503, ErrUnavailable), refusal(503, ErrUnavailable), ok}, 4, ErrUnavailable},
		{"not if Retry-After is too long", getInbox, []http.HandlerFunc{refusal(429, ErrRateLimited, "Retry-After", "91"), ok}, 1, ErrRateLimited},
		{"not after the daily limit", makeInbox, []http.HandlerFunc{refusal(429, ErrDailyLimitReached, "Retry-After", "1"), made}, 1, ErrDailyLimitReached},
		{"not after the monthly limit", makeInbox, []http.HandlerFunc{refusal(429, ErrMonthlyLimitReached, "Retry-After", "1"), made}, 1, ErrMonthlyLimitReached},
		{"not after an unknown limit", makeInbox, []http.HandlerFunc{refusal(429, "weekly_limit_reached", "Retry-After", "1"), made}, 1, Code("weekly_limit_reached")},
		{"not after the limit of the plan", makeInbox, []http.HandlerFunc{refusal(403, ErrPlanLimitReached), made}, 1, ErrPlanLimitReached},
		{"not after an internal error", getInbox, []http.HandlerFunc{refusal(500, ErrInternalError), ok}, 1, ErrInternalError},
		{"not a POST without an idempotency key", makeKey, []http.HandlerFunc{refusal(503, ErrUnavailable), ok}, 1, ErrUnavailable},
		{"not a POST without an idempotency key, after a reset", makeKey, []http.HandlerFunc{hangUp(""), ok}, 1, errAny},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newTestServer(t, tt.responses...)
			c, _ := newTestClient(t, s.URL)
			err := tt.call(c)
			if !isWanted(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.asked) != tt.tries {
				t.Errorf("%d tries, want %d", len(s.asked), tt.tries)
			}
			for i := range s.asked {
				if s.bodies[i] != s.bodies[0] || s.asked[i].Header.Get(idempotencyHeader) != s.asked[0].Header.Get(idempotencyHeader) {
					t.Errorf("try %d is %q %v, and the first %q %v", i+1, s.bodies[i], s.asked[i].Header, s.bodies[0], s.asked[0].Header)
				}
			}
		})
	}
}

// errAny stands for any error.
var errAny = errors.New("any")

func isWanted(err, want error) bool {
	return errors.Is(err, want) || err != nil && errors.Is(want, errAny)
}

// The client uses the pause of the server if there is one, or an increasing
// pause.
func TestPauses(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, refusal(429, ErrRateLimited, "Retry-After", "17"), refusal(503, ErrUnavailable), hangUp(""), respond(200, inboxJSON))
	c, n := newTestClient(t, s.URL)
	must(t, getInbox(c))
	if len(n.naps) != 3 || n.naps[0] != 17*time.Second || n.naps[1] < 500*time.Millisecond || n.naps[1] > time.Second || n.naps[2] < time.Second || n.naps[2] > 2*time.Second {
		t.Errorf("pauses of %v", n.naps)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "0": 0, "-1": 0, "soon": 0, "99999999999999999999": 0,
		"Fri, 02 Jan 2026 03:05:05 GMT": time.Minute, "Fri, 02 Jan 2026 03:03:05 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q is %v, want %v", text, got, want)
		}
	}
}

// An unreachable server causes an error with its address after a few attempts;
// an unknown host name does so at once.
func TestUnreachableServerIsReported(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	s.Close()
	c, n := newTestClient(t, s.URL)
	if err := getInbox(c); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(s.URL, "http://")) || len(n.naps) != defaultTries-1 {
		t.Errorf("%v after pauses of %v", err, n.naps)
	}
	unknown := &url.Error{Err: &net.OpError{Op: "dial", Err: &net.DNSError{IsNotFound: true}}}
	if lost(unknown) {
		t.Error("an unknown host name is retried")
	}
	if lost(&url.Error{Err: context.Canceled}) {
		t.Error("a cancelled call is retried")
	}
}

// The client does not wait beyond the end of the context.
func TestContextEndsTries(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, refusal(429, ErrRateLimited, "Retry-After", "60"), respond(200, inboxJSON))
	c, n := newTestClient(t, s.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := c.GetInbox(ctx, gen.GetInboxParams{InboxID: "ibx_1"}); !errors.Is(err, ErrRateLimited) || len(n.naps) != 0 {
		t.Errorf("%v after pauses of %v", err, n.naps)
	}
	s = newTestServer(t, refusal(503, ErrUnavailable), respond(200, inboxJSON))
	c, _ = newTestClient(t, s.URL)
	ctx, cancel = context.WithCancel(t.Context())
	c.caller.sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	if _, err := c.GetInbox(ctx, gen.GetInboxParams{InboxID: "ibx_1"}); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrUnavailable) {
		t.Errorf("stopped in a pause: %v", err)
	}
}

// The client adds a different idempotency key to each call of an operation that
// accepts one, and keeps the caller's own key.
func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	made := respond(http.StatusCreated, inboxJSON)
	s := newTestServer(t, made, made, made, respond(http.StatusCreated, `{}`), respond(http.StatusCreated, `{}`))
	c, _ := newTestClient(t, s.URL+"/below")
	for range 2 {
		must(t, makeInbox(c))
	}
	_, _ = c.CreateInbox(t.Context(), gen.OptInboxCreate{}, gen.CreateInboxParams{IdempotencyKey: Text("mine")})
	_ = makeKey(c) // the response is not a key; only the request matters
	mail := &gen.EmailSend{From: Address("a@b.example"), To: gen.NewMailboxRecipients("c@d.example"), Subject: gen.NewOptString("s"), Text: Body("t"), IdempotencyKey: Text("body")}
	_, _ = c.SendEmail(t.Context(), mail, gen.SendEmailParams{})
	var got []string
	for _, r := range s.requests() {
		got = append(got, r.Header.Get(idempotencyHeader))
	}
	if len(got) != 5 || got[0] == "" || got[0] == got[1] || !cmp.Equal(got[2:], []string{"mine", "", "body"}) {
		t.Errorf("keys %q", got)
	}
}

// The client adds keys to exactly the operations in the contract that accept
// one.
func TestIdempotentPathsAreTheContracts(t *testing.T) {
	t.Parallel()
	want := map[string]bool{}
	for path, ops := range contractOf(t).Paths {
		if op, ok := ops["post"]; ok {
			want[path] = op.has("IdempotencyKey")
		}
	}
	n := 0
	for path, takes := range want {
		if takes {
			n++
		}
		filled := strings.NewReplacer("{inbox_id}", "ibx_1", "{message_id}", "msg_1", "{draft_id}", "drf_1", "{webhook_id}", "wh_1",
			"{delivery_id}", "dlv_1", "{id}", "x_1", "{api_key_id}", "key_1").Replace(path)
		if takesIdempotencyKey(http.MethodPost, filled) != takes || takesIdempotencyKey(http.MethodGet, filled) {
			t.Errorf("POST %s accepts an idempotency key: %t", path, takes)
		}
	}
	if n != len(idempotent) {
		t.Errorf("%d POSTs accept an idempotency key, but %d are listed", n, len(idempotent))
	}
}

// contractDoc has the parts of the contract that the tests read.
type contractDoc struct {
	Paths      map[string]map[string]contractOp
	Components struct {
		Schemas, Examples, Responses map[string]any
	}
}

type contractOp struct {
	OperationID string
	Parameters  []struct {
		Ref  string `json:"$ref"`
		Name string
	}
	Responses map[string]any
}

func (o contractOp) has(parameter string) bool {
	for _, p := range o.Parameters {
		if p.Ref == "#/components/parameters/"+parameter {
			return true
		}
	}
	return false
}

func contractOf(t *testing.T) contractDoc {
	t.Helper()
	var all struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas, Examples, Responses map[string]any }
	}
	must(t, json.Unmarshal(gen.OpenAPI(), &all))
	doc := contractDoc{Paths: map[string]map[string]contractOp{}, Components: all.Components}
	for path, item := range all.Paths {
		doc.Paths[path] = map[string]contractOp{}
		for method, text := range item {
			var op contractOp
			if json.Unmarshal(text, &op) == nil && op.OperationID != "" {
				doc.Paths[path][method] = op
			}
		}
	}
	return doc
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
