package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestTheReferenceIsServed needs no key for it, and one for everything else.
func TestTheReferenceIsServed(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	for path, want := range map[string]string{
		"/docs": "<title>Documentation · Postroom</title>", "/llms.txt": "# Postroom", "/docs/try.js": "openapi.json", "/docs/api/createInbox": "POST /v1/inboxes", "/openapi.json": `"openapi":"3.1`, "/v1/inboxes": `"unauthorized"`,
	} {
		res, err := http.Get(s.api + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || !strings.Contains(strings.ReplaceAll(string(body), ": ", ":"), want) {
			t.Errorf("%s: status %s: %v\n%.300s", path, res.Status, err, body)
		}
	}
}

// Every response has a request id, which an error repeats in its body.
func TestEveryResponseHasARequestID(t *testing.T) {
	t.Parallel()
	s := serve(t, t.TempDir())
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	seen := map[string]bool{}
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/docs", 200}, {"HEAD", "/docs", 200}, {"GET", "/docs/", 308}, {"GET", "/docs/try", 200}, {"GET", "/docs/try.js", 200},
		{"GET", "/docs/swagger-ui-bundle.js", 200}, {"GET", "/docs/none", 404}, {"POST", "/docs", 404}, {"GET", "/llms.txt", 200}, {"GET", "/openapi.json", 200},
		{"GET", "/health", 200}, {"HEAD", "/health", 200}, {"POST", "/health", 405}, {"GET", "/mcp", 405}, {"POST", "/mcp", 401},
		{"GET", "/", 303}, {"GET", "/sign-in", 200}, {"GET", "/assets/app.css", 200}, {"GET", "/assets/none", 404}, {"GET", "/nothing", 404}, {"GET", "//nothing", 404},
		{"GET", "/v1/nothing", 404}, {"DELETE", "/v1/inboxes", 405}, {"GET", "/v1/inboxes", 401}, {"GET", "/v1/files/x", 403},
		{"GET", "/u/x", 404}, {"POST", "/u/x", 404}, {"GET", "/t/o/x", 404}, {"GET", "/t/c/x", 404},
	} {
		for _, accept := range []string{"", "text/html"} {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, s.api+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", accept)
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil {
				t.Fatal(err)
			}
			ids := res.Header.Values("X-Request-Id")
			if res.StatusCode != tt.status || len(ids) != 1 || !strings.HasPrefix(ids[0], "req_") || seen[ids[0]] {
				t.Errorf("%s %s for %q: %d with request ids %q", tt.method, tt.path, accept, res.StatusCode, ids)
				continue
			}
			seen[ids[0]] = true
			if res.Header.Get("Content-Type") == "application/json; charset=utf-8" && res.StatusCode >= 400 && !strings.Contains(string(body), ids[0]) {
				t.Errorf("%s %s: the error does not name %s: %s", tt.method, tt.path, ids[0], body)
			}
		}
	}
}
