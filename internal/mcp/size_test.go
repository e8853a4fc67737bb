package mcp

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// listing returns the response to tools/list for a key with these scopes.
func listing(t *testing.T, scopes ...string) []byte {
	t.Helper()
	h, err := New(Config{Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	must(t, err)
	ctx := httpapi.AsKey(t.Context(), store.Key{Scopes: store.JSON[[]string]{V: scopes}})
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var res struct{ Result json.RawMessage }
	if err := json.Unmarshal(w.Body.Bytes(), &res); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return res.Result
}

// A model reads the list of tools before each conversation. Tokens are estimated as
// bytes of the JSON divided by 4.
func TestListOfToolsIsShort(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		scopes []string
		most   int // tokens
	}{
		{"an agent", []string{"read", "send"}, 3500},
		{"an agent that sends product email", []string{"read", "send", "emails:send", "templates:read"}, 4000},
		{"a key with all scopes", []string{"*"}, 4300},
		{"a key for codes", []string{"codes:read"}, 400},
	}
	for _, tt := range tests {
		if tokens := len(listing(t, tt.scopes...)) / 4; tokens > tt.most {
			t.Errorf("%s reads %d tokens, want at most %d", tt.name, tokens, tt.most)
		} else {
			t.Logf("%s reads %d tokens", tt.name, tokens)
		}
	}
}

// Product email is for keys that were given its scopes: the scope send includes them
// for programs, but an agent would read tools that it does not need.
func TestToolsOfProductEmail(t *testing.T) {
	t.Parallel()
	for scope, want := range map[string]bool{"send": false, "read": false, "emails:send": true, "admin": true, "*": true} {
		if got := strings.Contains(string(listing(t, scope)), `"send_transactional"`); got != want {
			t.Errorf("a key with %s sees send_transactional: %t, want %t", scope, got, want)
		}
	}
	for scope, want := range map[string]bool{"read": false, "templates:read": true, "templates:write": true, "*": true} {
		if got := strings.Contains(string(listing(t, scope)), `"preview_template"`); got != want {
			t.Errorf("a key with %s sees preview_template: %t, want %t", scope, got, want)
		}
	}
}

// Arguments are texts, numbers, flags, and lists and objects of them: no
// alternatives, no nulls, and no lengths.
func TestArgumentsAreSimple(t *testing.T) {
	t.Parallel()
	all := string(listing(t, "*"))
	for _, word := range []string{"oneOf", "anyOf", "maxLength", `"pattern":"`, "null", "outputSchema", `"email":`} {
		if strings.Contains(all, word) {
			t.Errorf("the list of tools contains %s", word)
		}
	}
	if want := `"to":{"description":"Addresses, such as Ana \u003cana@example.org\u003e.","items":{"type":"string"},"type":"array"}`; !strings.Contains(all, want) {
		t.Errorf("recipients are not a list of texts: %s", all)
	}
}
