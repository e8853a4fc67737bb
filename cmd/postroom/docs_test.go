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
		if res.Header.Get("X-Request-Id") == "" && (path == "/openapi.json" || path == "/v1/inboxes") {
			t.Errorf("%s was not answered by the API", path)
		}
	}
}
