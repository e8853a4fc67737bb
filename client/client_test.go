package client

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestNewChecksItsConfig(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, address, key, want string }{
		{"an address", "https://mail.example.com", "sk_live_1", ""},
		{"with a slash and a path", "http://127.0.0.1:8080/mail/", "sk_live_1\n", ""},
		{"without a scheme", "mail.example.com", "sk_live_1", `"mail.example.com" is not the address`},
		{"of another scheme", "ftp://mail.example.com", "sk_live_1", "is not the address"},
		{"without a host", "http://", "sk_live_1", "is not the address"},
		{"with a query", "http://mail.example.com?a=b", "sk_live_1", "is not the address"},
		{"with the version", "http://mail.example.com/v1", "sk_live_1", "leave /v1 out"},
		{"with a password, which is not shown", "http://ana:secret@mail.example.com", "sk_live_1", "has a user in it"},
		{"an invalid address, which is not shown", "http://ana:secret@%zz", "sk_live_1", "is not a URL"},
		{"no key", "http://mail.example.com", " ", "the key is empty"},
		{"an invalid key", "http://mail.example.com", "sk_live\r\nX: y", "characters that no key has"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(tt.address, tt.key)
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, refusal(503, ErrUnavailable), respond(200, inboxJSON))
	own := &http.Client{Timeout: time.Minute}
	c, _ := newTestClient(t, s.URL+"/below", WithUserAgent("shop/1"), WithRetries(1, time.Hour), WithHTTPClient(own))
	if err := getInbox(c); err == nil || len(s.requests()) != 1 {
		t.Errorf("%v after %d tries, want one", err, len(s.requests()))
	}
	r := s.requests()[0]
	if r.UserAgent() != "shop/1" || r.URL.Path != "/below/v1/inboxes/ibx_1" || r.Header.Get("Authorization") != "Bearer sk_test_1" {
		t.Errorf("asked %s with %v", r.URL, r.Header)
	}
	if own.CheckRedirect != nil {
		t.Error("the caller's own client was changed")
	}
}

// The client sends the key only to its own server.
func TestKeyIsSentToItsOwnServerOnly(t *testing.T) {
	t.Parallel()
	store := newTestServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("Subject: x\r\n")) })
	s := newTestServer(t, respond(302, "", "Location", store.URL+"/bucket/key?sig=1"), respond(301, "", "Location", store.URL+"/v1/inboxes/ibx_1"))
	c, _ := newTestClient(t, s.URL)
	raw, err := c.Raw(t.Context(), "msg_1")
	must(t, err)
	if err := raw.Close(); err != nil {
		t.Error(err)
	}
	if err := getInbox(c); err == nil || !strings.Contains(err.Error(), "redirects to") {
		t.Errorf("a server that has moved: %v", err)
	}
	if len(store.requests()) != 1 || store.requests()[0].Header.Get("Authorization") != "" {
		t.Errorf("the other server got %d requests, with %v", len(store.requests()), store.requests()[0].Header)
	}
}
