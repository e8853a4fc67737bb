package contractcheck_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

const contractPath = "../../gen/openapi.json"

// get sends n requests to a server with that response, through the client that the suite
// provides.
func get(t *testing.T, h http.Handler, n int, client func(server *url.URL) (http.RoundTripper, *url.URL)) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	server, err := url.Parse(srv.URL)
	must(t, err)
	transport, base := client(server)
	for range n {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base.JoinPath("/v1/inboxes/ibx_1").String(), nil)
		must(t, err)
		res, err := transport.RoundTrip(req)
		must(t, err)
		_ = res.Body.Close() // the body does not matter
	}
}

func TestSuiteFailsThePackage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		response  response
		code      int // of the tests
		want      int
		wantFault bool
	}{
		"as documented, and the tests pass": {jsonResponse(200, inbox), 0, 0, false},
		"as documented, and a test fails":   {jsonResponse(200, inbox), 1, 1, false},
		"undocumented, and the tests pass":  {jsonResponse(200, "{}"), 0, 1, true},
		"undocumented, and a test panics":   {jsonResponse(200, "{}"), 2, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := contractcheck.NewSuite(contractPath, 0)
			get(t, tt.response, 2, func(server *url.URL) (http.RoundTripper, *url.URL) {
				return s.Transport(http.DefaultTransport), server
			})
			var said strings.Builder
			if got := s.End(&said, "pkg", true, tt.code); got != tt.want {
				t.Errorf("the exit status is %d, want %d", got, tt.want)
			}
			if !strings.Contains(said.String(), "pkg: 2 exchanges checked") || strings.Contains(said.String(), "does not match the contract") != tt.wantFault {
				t.Errorf("it prints\n%s", &said)
			}
		})
	}
}

func TestSuiteChecksASample(t *testing.T) {
	t.Parallel()
	s := contractcheck.NewSuite(contractPath, 5)
	get(t, jsonResponse(200, inbox), 50, func(server *url.URL) (http.RoundTripper, *url.URL) {
		return s.Transport(http.DefaultTransport), server
	})
	var said strings.Builder
	s.End(&said, "pkg", true, 0)
	if want := "pkg: 7 exchanges checked against the contract, and 43 more of the same kinds skipped\n"; said.String() != want {
		t.Errorf("it prints %q, want %q", &said, want)
	}
}

func TestProxyForwardsAndReports(t *testing.T) {
	t.Parallel()
	s := contractcheck.NewSuite(contractPath, 0)
	get(t, jsonResponse(200, "{}"), 1, func(server *url.URL) (http.RoundTripper, *url.URL) {
		proxy := s.Proxy(server, http.DefaultTransport)
		t.Cleanup(proxy.Close)
		through, err := url.Parse(proxy.URL)
		must(t, err)
		return http.DefaultTransport, through
	})
	var said strings.Builder
	if s.End(&said, "pkg", false, 0) != 1 || !strings.Contains(said.String(), "/v1/inboxes/ibx_1 (200 OK)") {
		t.Errorf("it prints %q", &said)
	}
}

// An exchange that was written to a connection directly is checked like any other.
func TestTextReports(t *testing.T) {
	t.Parallel()
	ask := "GET /v1/inboxes/ibx_1 HTTP/1.1\r\nHost: x\r\n\r\n"
	good := "HTTP/1.1 404 Not Found\r\nX-Request-Id: req_1\r\nContent-Type: application/json\r\n\r\n" +
		`{"error":{"code":"not_found","message":"no","request_id":"req_1"}}`
	for name, tt := range map[string]struct {
		request, response string
		want              string // a part of the report; empty for none
	}{
		"as documented": {ask, good, ""},
		"undocumented":  {ask, strings.Replace(good, "not_found", "gone", 1), "gone"},
		"no response":   {ask, "220 hello\r\n", "got"},
		"not a request": {"hello\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got reports
			newChecker(t).Text(&got, tt.request, tt.response)
			if all := strings.Join(got, "\n"); (tt.want == "") != (all == "") || !strings.Contains(all, tt.want) {
				t.Errorf("reported %q, want something with %q", all, tt.want)
			}
		})
	}
}
