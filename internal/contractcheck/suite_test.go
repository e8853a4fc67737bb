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

// get asks a server with that answer, n times, in the way that the suite makes of
// a client.
func get(t *testing.T, h http.Handler, n int, client func(server *url.URL) (http.RoundTripper, *url.URL)) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	server, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	transport, base := client(server)
	for range n {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base.JoinPath("/v1/inboxes/ibx_1").String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close() // nobody reads it
	}
}

func TestSuiteFailsThePackage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer    answer
		code      int // of the tests
		want      int
		wantFault bool
	}{
		"as foreseen, and the tests pass":     {jsonAnswer(200, inbox), 0, 0, false},
		"as foreseen, and a test fails":       {jsonAnswer(200, inbox), 1, 1, false},
		"not as foreseen, and the tests pass": {jsonAnswer(200, "{}"), 0, 1, true},
		"not as foreseen, and a test panics":  {jsonAnswer(200, "{}"), 2, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := contractcheck.NewSuite(contractPath, 0)
			get(t, tt.answer, 2, func(server *url.URL) (http.RoundTripper, *url.URL) {
				return s.Transport(http.DefaultTransport), server
			})
			var said strings.Builder
			if got := s.End(&said, "pkg", true, tt.code); got != tt.want {
				t.Errorf("the exit status is %d, want %d", got, tt.want)
			}
			if !strings.Contains(said.String(), "pkg: 2 exchanges held") || strings.Contains(said.String(), "not as in the contract") != tt.wantFault {
				t.Errorf("it says\n%s", &said)
			}
		})
	}
}

func TestSuiteLooksAtSome(t *testing.T) {
	t.Parallel()
	s := contractcheck.NewSuite(contractPath, 5)
	get(t, jsonAnswer(200, inbox), 50, func(server *url.URL) (http.RoundTripper, *url.URL) {
		return s.Transport(http.DefaultTransport), server
	})
	var said strings.Builder
	s.End(&said, "pkg", true, 0)
	if want := "pkg: 7 exchanges held against the contract, and 43 more of the same kinds not\n"; said.String() != want {
		t.Errorf("it says %q, want %q", &said, want)
	}
}

func TestSuiteWithoutAContract(t *testing.T) {
	t.Parallel()
	s := contractcheck.NewSuite("no.yaml", 0)
	s.Ready()
	var said strings.Builder
	if got := s.End(&said, "pkg", false, 0); got != 1 || !strings.Contains(said.String(), "no.yaml") {
		t.Errorf("the exit status is %d, and it says %q", got, &said)
	}
}

func TestProxyHandsOnAndReports(t *testing.T) {
	t.Parallel()
	s := contractcheck.NewSuite(contractPath, 0)
	get(t, jsonAnswer(200, "{}"), 1, func(server *url.URL) (http.RoundTripper, *url.URL) {
		proxy := s.Proxy(server, http.DefaultTransport)
		t.Cleanup(proxy.Close)
		through, err := url.Parse(proxy.URL)
		if err != nil {
			t.Fatal(err)
		}
		return http.DefaultTransport, through
	})
	var said strings.Builder
	if s.End(&said, "pkg", false, 0) != 1 || !strings.Contains(said.String(), "/v1/inboxes/ibx_1 (200 OK)") {
		t.Errorf("it says %q", &said)
	}
}

// What was written to a connection by hand is looked at like any other exchange.
func TestTextReports(t *testing.T) {
	t.Parallel()
	ask := "GET /v1/inboxes/ibx_1 HTTP/1.1\r\nHost: x\r\n\r\n"
	good := "HTTP/1.1 404 Not Found\r\nX-Request-Id: req_1\r\nContent-Type: application/json\r\n\r\n" +
		`{"error":{"code":"not_found","message":"no","request_id":"req_1"}}`
	for name, tt := range map[string]struct {
		request, answer string
		want            string // a part of the report; empty for none
	}{
		"as foreseen":              {ask, good, ""},
		"not as foreseen":          {ask, strings.Replace(good, "not_found", "gone", 1), "gone"},
		"no answer":                {ask, "220 hello\r\n", "was answered"},
		"no request to begin with": {"hello\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got reports
			newChecker(t).Text(&got, tt.request, tt.answer)
			if all := strings.Join(got, "\n"); (tt.want == "") != (all == "") || !strings.Contains(all, tt.want) {
				t.Errorf("reported %q, want something with %q", all, tt.want)
			}
		})
	}
}
