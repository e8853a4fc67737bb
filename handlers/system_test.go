package handlers_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/postroom/postroom/handlers"
)

func TestHealth(t *testing.T) {
	s := serve(t)
	res := s.do(t, http.MethodGet, "/health", "", as("")).want(t, http.StatusOK)
	res.wantAt(t, "status", `"ok"`)
	res.wantAt(t, "version", `"test"`)
	res.wantAt(t, "database", `{"engine":"`+s.store.Engine()+`","state":"ok"}`)

	close(s.stopping)
	res = s.do(t, http.MethodGet, "/health", "", as("")).want(t, http.StatusServiceUnavailable)
	res.wantAt(t, "status", `"unavailable"`)
	res.wantAt(t, "database.state", `"ok"`)

	must(t, s.store.Close())
	res = s.do(t, http.MethodGet, "/health", "", as("")).want(t, http.StatusServiceUnavailable)
	res.wantAt(t, "database.state", `"unavailable"`)
	s.do(t, http.MethodGet, "/v1/inboxes", "").wantError(t, http.StatusServiceUnavailable, "unavailable")
}

// The served document is the contract with the address of this installation.
func TestOpenapiIsTheContract(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, server string }{
		{"https://mail.example.com", "https://mail.example.com"},
		{"https://example.com/mail/", "https://example.com/mail"},
	} {
		t.Run(tt.base, func(t *testing.T) {
			base, err := url.Parse(tt.base)
			must(t, err)
			s := serve(t, func(c *handlers.Config) { c.BaseURL = base })
			file, err := os.ReadFile("../gen/openapi.json")
			must(t, err)
			want, got := map[string]any{}, map[string]any{}
			must(t, json.Unmarshal(file, &want))
			res := s.do(t, http.MethodGet, "/openapi.json", "", as("")).want(t, http.StatusOK)
			must(t, json.Unmarshal(res.body, &got))
			want["servers"] = []any{map[string]any{"url": tt.server, "description": "This installation"}}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-contract +served:\n%s", d)
			}
		})
	}
}
