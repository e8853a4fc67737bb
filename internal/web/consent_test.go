package web_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/postroom/postroom/internal/oauth"
	"github.com/postroom/postroom/store"
)

// The verifier of RFC 7636, appendix B, and its challenge.
const (
	pkceVerifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	pkceChallenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// authorization registers an application and returns the address to which it sends a
// person.
func (s *site) authorization(t *testing.T, name, redirect string) string {
	t.Helper()
	c, err := s.store.RegisterClient(t.Context(), name, []string{redirect})
	must(t, err)
	return oauth.AuthorizePath + "?" + url.Values{
		"response_type": {"code"}, "client_id": {c.ID}, "redirect_uri": {redirect}, "code_challenge": {pkceChallenge}, "code_challenge_method": {"S256"},
		"state": {"x"},
	}.Encode()
}

// connect connects an application.
func (s *site) connect(t *testing.T, name string) {
	t.Helper()
	at, err := url.Parse(s.authorization(t, name, "https://client.example/callback"))
	must(t, err)
	req, err := s.apps.Request(t.Context(), at.Query())
	must(t, err)
	to, err := s.apps.Approve(t.Context(), req, s.account, store.Rights{Name: name, Scopes: []string{"read"}})
	must(t, err)
	s.exchange(t, req.Client.ID, to)
}

// exchange uses the code that an application got at an address.
func (s *site) exchange(t *testing.T, client, at string) {
	t.Helper()
	u, err := url.Parse(at)
	must(t, err)
	s.visit(t).post("/oauth/token", []string{
		"grant_type", "authorization_code", "client_id", client, "code", u.Query().Get("code"), "code_verifier", pkceVerifier,
	}).want(t, http.StatusOK).has(t, `"access_token":"sk_oauth_`)
}
