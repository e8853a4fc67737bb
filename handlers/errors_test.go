package handlers_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/skiptest"
	"github.com/postroom/postroom/store"
)

func TestWrongMethods(t *testing.T) {
	s := serve(t)
	tests := []struct{ method, path, allow string }{
		{"PUT", "/v1/inboxes", "GET,HEAD,POST"},
		{"DELETE", "/v1/inboxes", "GET,HEAD,POST"},
		{"OPTIONS", "/v1/inboxes", "GET,HEAD,POST"},
		{"POST", "/v1/inboxes/ibx_1", "DELETE,GET,HEAD,PATCH"},
		{"POST", "/health", "GET,HEAD"},
		{"GET", "/mcp", "POST"},
		{"GET", "/v1/emails/batch", "POST"},
		{"FLY", "/v1/inboxes", "GET,HEAD,POST"},
	}
	for _, tt := range tests {
		res := s.do(t, tt.method, tt.path, "", as("")).wantError(t, http.StatusMethodNotAllowed, "method_not_allowed")
		allow := strings.Split(strings.ReplaceAll(res.header.Get("Allow"), " ", ""), ",")
		slices.Sort(allow)
		if message := res.str(t, "error.message"); !strings.HasPrefix(message, "this method is not allowed here: use ") {
			t.Errorf("%s %s: %q", tt.method, tt.path, message)
		}
		if got := strings.Join(allow, ","); got != tt.allow {
			t.Errorf("%s %s: Allow %s, want %s", tt.method, tt.path, got, tt.allow)
		}
	}
}

// The error says how to send a key, or that the key is wrong.
func TestMistakesWithKeys(t *testing.T) {
	s := serve(t)
	made := func(body string) (id, key string) {
		res := s.do(t, http.MethodPost, "/v1/api-keys", body).want(t, http.StatusCreated)
		return res.str(t, "id"), res.str(t, "key")
	}
	id, revoked := made(`{"name":"a","scopes":["read"]}`)
	s.do(t, http.MethodDelete, "/v1/api-keys/"+id, "").want(t, http.StatusOK)
	_, expired := made(`{"name":"b","scopes":["read"],"expires_at":"2026-09-23T11:00:00Z"}`)
	s.clock.Add(2 * time.Hour)
	for _, tt := range []struct{ header, value, want string }{
		{"X-Other", "", "the API key is missing: send it in the header Authorization: Bearer <key>"},
		{"X-API-Key", s.key, "the API key is in the header X-API-Key: send it in the header Authorization: Bearer <key>"},
		{"Authorization", s.key, "the header Authorization has no Bearer key: write Authorization: Bearer <key>"},
		{"Authorization", "Basic YTpi", "Basic is not a way to sign in here: write Authorization: Bearer <key>"},
		{"Authorization", "Bearer sk_live_wrong", "this API key is wrong: no key has this value"},
		{"Authorization", "Bearer " + revoked, "this API key was revoked at 2026-09-23T10:00:00Z: use another"},
		{"Authorization", "Bearer " + expired, "this API key expired at 2026-09-23T11:00:00Z: use another"},
	} {
		res := s.do(t, http.MethodGet, "/v1/inboxes", "", as(""), with(tt.header, tt.value)).wantError(t, http.StatusUnauthorized, "unauthorized")
		if got := res.str(t, "error.message"); got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.header, tt.value, got, tt.want)
		}
	}
}

// Mistakes in the path of a call. The error says what to write instead.
func TestMistakesInPaths(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	m := s.receive(t, in, "Subject: s")
	for _, tt := range []struct{ call, want string }{
		{"GET //v1/inboxes", "404 this path does not exist: remove the slashes that are too many, as in /v1/inboxes"},
		{"GET /v1/inboxes/", "404 not found: remove the slash at the end, or add the ID of an inbox"},
		{"GET /inboxes", "404 this path does not exist: did you mean /v1/inboxes?"},
		{"GET /v1/inbox", "404 this path does not exist: did you mean /v1/inboxes?"},
		{"GET /message/" + m.ID, "404 this path does not exist: did you mean /v1/messages/" + m.ID + "?"},
		{"GET /v1/sms", "404 this path does not exist"},
		{"PUT /v1/inboxes", "405 this method is not allowed here: use GET, POST, HEAD"},
		{"GET /v1/messages/" + in.ID, "404 " + in.ID + " is an inbox, not a message"},
		{"GET /v1/inboxes/" + m.ID + "/messages", "404 " + m.ID + " is a message, not an inbox"},
		{"GET /v1/inboxes/" + in.ID + "/threads/" + m.ID, "404 " + m.ID + " is a message, not a thread"},
		{"GET /v1/inboxes/nope", "404 not found: the ID of an inbox begins with ibx_"},
		{"GET /v1/inboxes/" + store.NewID("ibx_", s.clock.Now()) + "/messages/wait", "404 not found"},
		{"GET /v1/inboxes/" + in.Address, "404 not found: use the ID of the inbox, from GET /v1/inboxes?address=, instead of its address"},
		{"GET /v1/messages?since=2026-09-23T10:00:00+01:00", "400 since has a space in its offset: write + as %2B in a URL: \"2026-09-23T10:00:00 01:00\""},
	} {
		method, path, _ := strings.Cut(tt.call, " ")
		res := s.do(t, method, path, "", broken)
		if got := fmt.Sprint(res.status, " ", res.str(t, "error.message")); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.call, got, tt.want)
		}
	}
}

// maxBody is the largest body that the API accepts.
const maxBody = 60 << 20

func TestLargeBodies(t *testing.T) {
	skiptest.UnderRace(t)
	s := serve(t)
	pad := func(n int) string {
		return `{"display_name":"` + strings.Repeat("a", n-len(`{"display_name":""}`)) + `"}`
	}
	inChunks := func(r *http.Request) *http.Request {
		r.ContentLength = -1
		return r
	}
	t.Run("the largest is read", func(t *testing.T) {
		s.do(t, http.MethodPost, "/v1/inboxes", pad(maxBody), broken).wantError(t, http.StatusBadRequest, "invalid_request display_name")
	})
	t.Run("one byte more is refused by its length", func(t *testing.T) {
		s.do(t, http.MethodPost, "/v1/inboxes", pad(maxBody+1), broken).wantError(t, http.StatusRequestEntityTooLarge, "payload_too_large")
	})
	t.Run("one byte more is refused in chunks", func(t *testing.T) {
		s.do(t, http.MethodPost, "/v1/inboxes", pad(maxBody+1), broken, inChunks).wantError(t, http.StatusRequestEntityTooLarge, "payload_too_large")
	})
	t.Run("a bad key is refused before the body is read", func(t *testing.T) {
		s.do(t, http.MethodPost, "/v1/inboxes", pad(1<<20), broken, inChunks, as("no key")).want(t, http.StatusUnauthorized)
	})
	t.Run("many small chunks are accepted", func(t *testing.T) {
		s.do(t, http.MethodPost, "/v1/inboxes", `{"display_name":"a"}`, inChunks).want(t, http.StatusCreated)
	})
}

// H6: a compressed body could have any size once decompressed.
func TestPackedBodies(t *testing.T) {
	s := serve(t)
	for _, how := range []string{"gzip", "br", "gzip, identity"} {
		s.do(t, http.MethodPost, "/v1/inboxes", `{}`, broken, with("Content-Encoding", how)).
			wantError(t, http.StatusUnsupportedMediaType, "unsupported_media_type")
	}
	s.do(t, http.MethodPost, "/v1/inboxes", `{}`, with("Content-Encoding", "identity")).want(t, http.StatusCreated)
}

// The client of a truncated body cannot read a response; the server must keep
// running.
func TestBodyThatBreaksOff(t *testing.T) {
	s := serve(t)
	_, err := s.try(t.Context(), t, http.MethodPost, "/v1/inboxes", `{`, func(r *http.Request) *http.Request {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader([]byte(`{"na`))), 100
		return r
	})
	if err == nil {
		t.Error("half a request got a response")
	}
	s.do(t, http.MethodGet, "/v1/inboxes", "").want(t, http.StatusOK).wantAt(t, "data", `[]`)
}

func TestRequestIds(t *testing.T) {
	s := serve(t)
	seen := map[string]bool{}
	for _, path := range []string{"/v1/inboxes", "/v1/inboxes/ibx_0", "/nowhere", "/health", "/v1/inboxes?limit=0"} {
		id := s.do(t, http.MethodGet, path, "", broken, with("X-Request-Id", "mine")).header.Get("X-Request-Id")
		if !strings.HasPrefix(id, "req_") || seen[id] {
			t.Errorf("%s: request id %q is not new", path, id)
		}
		seen[id] = true
	}
}

// The error about a mistyped id says so, and is not_found as for an unknown one.
func TestMistypedIds(t *testing.T) {
	s := serve(t)
	in := s.newInbox(t)
	id := s.receive(t, in, "Subject: s").ID
	typed := id[:19] + strings.Map(func(r rune) rune { return map[bool]rune{true: '1', false: '0'}[r == '0'] }, id[19:])
	unknown := store.NewID("msg_", s.clock.Now())
	old := store.NewLongID("msg_", s.clock.Now())
	if len(id) != 20 || len(in.ID) != 20 {
		t.Errorf("ids %s and %s", id, in.ID)
	}
	const typo = " looks mistyped: its check character does not match"
	for path, want := range map[string]string{
		"/v1/messages/" + typed:                                            typed + typo,
		"/v1/inboxes/" + typed + "/messages":                               typed + typo,
		"/v1/messages?inbox_id=ibx_" + in.ID[4:18] + "0" + in.ID[18:]:      "ibx_" + in.ID[4:18] + "0" + in.ID[18:] + " looks mistyped: it has 21 characters instead of 20",
		"/v1/inboxes/" + in.ID + "/messages/wait?timeout=1&after=" + typed: "after " + typed + typo,
		"/v1/messages/" + unknown:                                          "not found",
		"/v1/messages/" + old:                                              "not found",
		"/v1/inboxes/" + in.Address + "/messages":                          "not found: use the ID of the inbox",
	} {
		res := s.do(t, http.MethodGet, path, "")
		if got := res.str(t, "error.message"); !strings.HasPrefix(got, want) || res.status != http.StatusNotFound && res.status != http.StatusBadRequest {
			t.Errorf("%s: %d %q, want %q", path, res.status, got, want)
		}
	}
	s.do(t, http.MethodDelete, "/v1/messages/"+typed, "").wantError(t, http.StatusNotFound, "not_found")
	s.do(t, http.MethodPost, "/v1/emails", `{"from":"a@`+mailDomain+`","to":"b@example.org","subject":"s","template":"tmpl_1"}`).
		wantError(t, http.StatusBadRequest, "invalid_request template")
	s.do(t, http.MethodPost, "/v1/webhooks", `{"url":"https://example.org/","inbox_ids":["`+in.ID[:19]+`"]}`).
		wantError(t, http.StatusBadRequest, "invalid_request inbox_ids[0]")
}
