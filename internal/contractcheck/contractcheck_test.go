package contractcheck_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/postroom/postroom/internal/contractcheck"
)

var contract = sync.OnceValues(func() (*openapi3.T, error) { return contractcheck.Load("../../gen/openapi.json") })

// TestTheContractIsInOrder is the only test that validates the contract itself.
func TestTheContractIsInOrder(t *testing.T) {
	t.Parallel()
	doc, err := contract()
	must(t, err)
	if err := contractcheck.Validate(t.Context(), doc); err != nil {
		t.Error(err)
	}
	broken, err := contractcheck.Load("../../gen/openapi.json")
	must(t, err)
	for _, example := range broken.Paths.Value("/v1/inboxes").Post.RequestBody.Value.Content["application/json"].Examples {
		example.Value.Value = 7
	}
	if err := contractcheck.Validate(t.Context(), broken); err == nil {
		t.Error("wrong examples pass")
	}
}

func newChecker(t *testing.T) *contractcheck.Checker {
	t.Helper()
	doc, err := contract()
	must(t, err)
	c, err := contractcheck.New(doc)
	must(t, err)
	return c
}

// reports collects the reports of a transport instead of failing the test.
type reports []string

func (r *reports) Helper() {}

func (r *reports) Errorf(format string, args ...any) { *r = append(*r, fmt.Sprintf(format, args...)) }

// response is the fixed response of a test server.
type response struct {
	status  int
	headers map[string]string
	body    string
}

// with returns the response with an additional header, or without it if value is empty.
func (a response) with(name, value string) response {
	headers := map[string]string{}
	maps.Copy(headers, a.headers)
	headers[name] = value
	if value == "" {
		delete(headers, name)
	}
	a.headers = headers
	return a
}

func (a response) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	for name, value := range a.headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// packed returns the response gzipped.
func packed(a response) response {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, a.body) // a buffer never fails
	_ = w.Close()                    // a buffer never fails
	a = a.with("Content-Encoding", "gzip")
	a.body = b.String()
	return a
}

func jsonResponse(status int, body string) response {
	return response{status, map[string]string{"Content-Type": "application/json; charset=utf-8", "X-Request-Id": "req_1"}, body}
}

func errorResponse(status int, code, message string) response {
	return jsonResponse(status, fmt.Sprintf(`{"error":{"code":%q,"message":%q,"request_id":"req_1"}}`, code, message))
}

const inbox = `{"object":"inbox","id":"ibx_1","address":"a@b.example","name":"a","domain":"b.example","display_name":null,` +
	`"send_policy":"open","status":"active","retention_days":7,"metadata":{"seen_at":"today"},"expires_at":null,"limits":null,"aliases":["a"],"catch_all":false,"quarantine":null,` +
	`"last_message_at":null,"created_at":"2026-09-23T10:00:00.000Z","updated_at":"2026-09-23T10:00:00.000Z"}`

// TestTransportReports finds each kind of mismatch between an exchange and the contract.
// Row H17 of docs/testing.md.
func TestTransportReports(t *testing.T) {
	t.Parallel()

	inboxWith := func(from, to string) response { return jsonResponse(200, strings.Replace(inbox, from, to, 1)) }
	tests := []struct {
		name     string
		request  string // method, path and body
		broken   bool
		response response
		want     string // a part of the report; empty for none
	}{
		{"a good exchange", "GET /v1/inboxes/ibx_1", false, jsonResponse(200, inbox), ""},
		{"a good response that is gzipped", "GET /v1/inboxes/ibx_1", false, packed(jsonResponse(200, inbox)), ""},
		{"a gzipped response with a missing field", "GET /v1/inboxes/ibx_1", false, packed(inboxWith(`"name":"a",`, ``)), "name"},
		{"a value outside an enum", "GET /v1/inboxes/ibx_1", false, inboxWith(`"active"`, `"asleep"`), "status"},
		{"a missing field", "GET /v1/inboxes/ibx_1", false, inboxWith(`"name":"a",`, ``), "name"},
		{"a wrong constant", "GET /v1/inboxes/ibx_1", false, inboxWith(`"object":"inbox"`, `"object":"box"`), "object"},
		{"a wrong format", "GET /v1/inboxes/ibx_1", false, inboxWith(`a@b.example`, `no-address`), "address"},
		{"a time without decimals", "GET /v1/inboxes/ibx_1", false, inboxWith(`:00.000Z","upd`, `:00Z","upd`), "created_at"},
		{"a time in another zone", "GET /v1/inboxes/ibx_1", false, inboxWith(`:00.000Z","upd`, `:00.000+01:00","upd`), "created_at"},
		{"an undocumented status", "GET /v1/inboxes/ibx_1", false, errorResponse(418, "invalid_request", "no"), "418 is not documented"},
		{"a status that only default covers", "GET /v1/inboxes/ibx_1", false, errorResponse(500, "internal_error", "no"), "500 is not"},
		{"a wrong content type", "GET /v1/inboxes/ibx_1", false, jsonResponse(200, inbox).with("Content-Type", "text/html"), "text/html"},
		{"no request id", "GET /v1/inboxes/ibx_1", false, jsonResponse(200, inbox).with("X-Request-Id", ""), "X-Request-Id"},
		{"a header of a wrong type", "GET /v1/inboxes/ibx_1", false, jsonResponse(200, inbox).with("RateLimit-Limit", "many"), "RateLimit-Limit"},
		{"a missing header", "GET /v1/inboxes/ibx_1", false, errorResponse(429, "rate_limited", "slow"), "Retry-After"},
		{"a missing location", "GET /v1/messages/msg_1/raw", false, response{302, map[string]string{"X-Request-Id": "req_1"}, ""}, "Location"},
		{
			"a relative location",
			"GET /v1/messages/msg_1/raw", false,
			response{302, map[string]string{"X-Request-Id": "req_1", "Location": "/v1/files/x"}, ""},
			"Location",
		},

		{"a good error", "GET /v1/inboxes/ibx_1", false, errorResponse(404, "not_found", "no 100% such inbox"), ""},
		{"a code of another status", "GET /v1/inboxes/ibx_1", false, errorResponse(404, "unauthorized", "no"), "not documented for 404"},
		{"another request id", "GET /v1/inboxes/ibx_1", false, errorResponse(404, "not_found", "no").with("X-Request-Id", "req_2"), "request_id"},
		{"a message with internal details", "GET /v1/inboxes/ibx_1", false, errorResponse(404, "not_found", "sql: no rows"), "internal details"},
		{"no message", "GET /v1/inboxes/ibx_1", false, errorResponse(404, "not_found", ""), "internal details"},
		{"an error in plain text", "GET /v1/inboxes/ibx_1", false, errorResponse(404, "not_found", "no").with("Content-Type", "text/plain"), "text/plain"},

		{"a broken request", `POST /v1/inboxes {"name":7}`, false, errorResponse(400, "invalid_request", "name"), "contract does not allow the request"},
		{"a request that is broken on purpose", `POST /v1/inboxes {"name":7}`, true, errorResponse(400, "invalid_request", "name"), ""},
		{"a broken request that the server accepts", `POST /v1/inboxes {"name":7}`, true, jsonResponse(201, inbox), "the server accepted it"},
		{"a parameter of a wrong type", `GET /v1/inboxes?limit=ten`, false, errorResponse(400, "invalid_request", "limit"), "contract does not allow the request"},
		{"a list with a wrong item", `GET /v1/events/stream?events=email.sent,email.eaten`, false, errorResponse(400, "invalid_request", "events"), "contract does not allow the request"},
		{"a header out of its bounds", "GET /v1/inboxes/ibx_1", false, jsonResponse(200, inbox).with("RateLimit-Reset", "-1"), "RateLimit-Reset"},
		{"a broken parameter", `GET /v1/inboxes?limit=0`, false, errorResponse(400, "invalid_request", "limit"), "contract does not allow the request"},

		{"an unknown path", "GET /v2", false, errorResponse(404, "route_not_found", "no"), ""},
		{"an unknown path in plain text", "GET /v2", false, response{404, nil, "404 page not found"}, "not the common error body"},
		{"an unknown path that works", "GET /v2", false, jsonResponse(200, `{"error":{"code":"x"}}`), "got 200"},
		{"an unknown method", "PUT /v1/inboxes", false, errorResponse(405, "method_not_allowed", "no").with("Allow", "GET, POST"), ""},
		{"an unknown method without Allow", "PUT /v1/inboxes", false, errorResponse(405, "method_not_allowed", "no"), "got 405"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got reports
			exchange(t, newChecker(t), &got, tt.response, tt.request, tt.broken)
			switch all := strings.Join(got, "\n"); {
			case tt.want == "" && all != "":
				t.Errorf("reported: %s", all)
			case !strings.Contains(all, tt.want) || tt.want != "" && all == "":
				t.Errorf("reported %q, want something with %q", all, tt.want)
			}
		})
	}
}

// exchange sends the request, written as "METHOD path body", to a server with that
// response.
func exchange(t *testing.T, c *contractcheck.Checker, r contractcheck.Reporter, h http.Handler, request string, broken bool) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	parts := strings.SplitN(request, " ", 3)
	ctx := t.Context()
	if broken {
		ctx = contractcheck.Broken(ctx)
	}
	var body io.Reader
	if len(parts) == 3 {
		body = strings.NewReader(parts[2])
	}
	req, err := http.NewRequestWithContext(ctx, parts[0], srv.URL+parts[1], body)
	must(t, err)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	client := &http.Client{
		Transport:     c.Transport(r, &http.Transport{DisableCompression: true}),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	must(t, err)
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Errorf("the response can no longer be read: %v", err)
	}
	_ = res.Body.Close()
}

// A stream continues: the transport must not wait for its end.
func TestTransportDoesNotBufferStreams(t *testing.T) {
	t.Parallel()

	var got reports
	first := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Request-Id", "req_1")
		_, _ = io.WriteString(w, "retry: 3000\n\n")
		w.(http.Flusher).Flush()
		select {
		case <-first:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	client := http.Client{Transport: newChecker(t).Transport(&got, srv.Client().Transport)}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/events/stream", nil)
	must(t, err)
	res, err := client.Do(req)
	must(t, err)
	buf := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != "retry" {
		t.Errorf("read %q, %v", buf, err)
	}
	close(first)
	_ = res.Body.Close()
	if len(got) != 0 {
		t.Errorf("reported: %s", got)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
