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
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		res := s.do(t, http.MethodGet, "/health", "", as("")).want(t, http.StatusOK)
		res.wantAt(t, "status", `"ok"`)
		res.wantAt(t, "version", `"test"`)
		res.wantAt(t, "database", `{"engine":"`+s.store.Engine()+`","state":"ok"}`)

		close(s.stopping)
		res = s.do(t, http.MethodGet, "/health", "", as("")).want(t, http.StatusServiceUnavailable)
		res.wantAt(t, "status", `"unavailable"`)
		res.wantAt(t, "database.state", `"ok"`)

		if err := s.store.Close(); err != nil {
			t.Fatal(err)
		}
		res = s.do(t, http.MethodGet, "/health", "", as("")).want(t, http.StatusServiceUnavailable)
		res.wantAt(t, "database.state", `"unavailable"`)
		s.do(t, http.MethodGet, "/v1/inboxes", "").wantError(t, http.StatusServiceUnavailable, "unavailable")
	})
}

// The served document is the contract with the address of this installation.
func TestOpenapiIsTheContract(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ base, server string }{
		{"https://mail.example.com", "https://mail.example.com"},
		{"https://example.com/mail/", "https://example.com/mail"},
	} {
		t.Run(tt.base, func(t *testing.T) {
			t.Parallel()
			base, err := url.Parse(tt.base)
			if err != nil {
				t.Fatal(err)
			}
			each(t, func(t *testing.T, s *server) {
				file, err := os.ReadFile("../gen/openapi.json")
				if err != nil {
					t.Fatal(err)
				}
				want, got := map[string]any{}, map[string]any{}
				if err := json.Unmarshal(file, &want); err != nil {
					t.Fatal(err)
				}
				res := s.do(t, http.MethodGet, "/openapi.json", "", as("")).want(t, http.StatusOK)
				if err := json.Unmarshal(res.body, &got); err != nil {
					t.Fatal(err)
				}
				want["servers"] = []any{map[string]any{"url": tt.server, "description": "This installation"}}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("-contract +served:\n%s", d)
				}
			}, func(c *handlers.Config) { c.BaseURL = base })
		})
	}
}
