package handlers_test

import (
	"encoding/json"
	"net/http"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestOpenapiIsTheContract(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *server) {
		want, err := os.ReadFile("../gen/openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		got := s.do(t, http.MethodGet, "/openapi.json", "", as("")).want(t, http.StatusOK)
		if d := cmp.Diff(string(want), string(got.body)); d != "" {
			t.Errorf("-file +served:\n%s", d)
		}
		if !json.Valid(got.body) {
			t.Error("it is not JSON")
		}
	})
}
