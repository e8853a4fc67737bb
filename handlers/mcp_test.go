package handlers_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/postroom/postroom/handlers"
)

// echoMCP returns the body it receives, after sending the same body to the API,
// which refuses it.
func echoMCP(local http.RoundTripper) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		nested, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "http://localhost/v1/inboxes", bytes.NewReader(body))
		if err == nil {
			nested.Header.Set("Content-Type", "application/json")
			var res *http.Response
			if res, err = local.RoundTrip(nested); err == nil && res.StatusCode != http.StatusBadRequest {
				http.Error(w, res.Status, http.StatusInternalServerError)
				return
			}
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client may have disconnected
	}), nil
}

func withEcho(c *handlers.Config) { c.MCP = echoMCP }

// Large tool calls arrive complete, with the contents of attachments. Many
// concurrent ones do not block each other or their own calls.
func TestLargeCallsOfTools(t *testing.T) {
	s := serve(t, withEcho)
	body := `{"params":{"attachments":[{"filename":"a","content":"` + strings.Repeat("QUJD", 1500<<10) + `"}]}}`
	var calls sync.WaitGroup
	for range 3 {
		calls.Go(func() {
			res, err := s.try(t.Context(), t, http.MethodPost, "/mcp", body)
			if err != nil || res.status != http.StatusOK || string(res.body) != body {
				t.Errorf("got %d with %d bytes of %d, %v", res.status, len(res.body), len(body), err)
			}
		})
	}
	calls.Wait()
	s.do(t, http.MethodPost, "/mcp", `{"a":"`+strings.Repeat("a", 8<<20)+`"}`).wantError(t, http.StatusRequestEntityTooLarge, "payload_too_large")
}

// Foreign pages may not call, by any host name or through any proxy.
func TestOriginOfMCP(t *testing.T) { // H18
	s := serve(t, withEcho, func(c *handlers.Config) { c.BaseURL = &url.URL{Scheme: "https", Host: "mail.example.com"} })
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	must(t, err)
	for _, tt := range []struct {
		host, origin string
		allowed      bool
	}{
		{"", "", true},
		{"localhost:" + port, "", true},
		{"localhost:" + port, "http://localhost:" + port, true},
		{"[::1]:" + port, "http://[::1]:" + port, true},
		{"mail.example.com", "", true},
		{"mail.example.com", "https://mail.example.com", true},
		{"MAIL.example.com", "https://MAIL.EXAMPLE.com", true},
		{"mail.example.com", "http://mail.example.com", false},
		{"mail.example.com", "https://mail.example.com:8443", false},
		{"mail.example.com", "https://mail.example.com.attacker.example", false},
		{"mail.example.com", "https://attacker.example", false},
		{"attacker.example", "", false},
		{"attacker.example", "http://attacker.example", false},
		{"localhost.attacker.example", "", false},
		{"127.0.0.1.attacker.example:" + port, "", false},
		{"localhost:" + port, "http://localhost:1", false},
		{"localhost:" + port, "null", false},
		{"localhost:" + port, "file://", false},
	} {
		res := s.do(t, http.MethodPost, "/mcp", `{"x":1}`, func(r *http.Request) *http.Request {
			if tt.host != "" {
				r.Host = tt.host
			}
			if tt.origin != "" {
				r.Header.Set("Origin", tt.origin)
			}
			return r
		})
		if tt.allowed {
			res.want(t, http.StatusOK)
		} else {
			res.wantError(t, http.StatusForbidden, "origin_not_allowed")
		}
	}
}

// Plain text errors of the MCP server get the body that all errors share.
func TestFaultsOfMCP(t *testing.T) {
	for status, want := range map[int]string{400: "invalid_request", 404: "unavailable"} {
		t.Run(want, func(t *testing.T) {
			s := serve(t, func(c *handlers.Config) {
				c.MCP = func(http.RoundTripper) (http.Handler, error) {
					return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "why", status) }), nil
				}
			})
			s.do(t, http.MethodPost, "/mcp", `{}`).wantError(t, map[int]int{400: 400, 404: 503}[status], want)
		})
	}
}
