package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/postroom/postroom/internal/apikey"
	"github.com/postroom/postroom/store"
)

// verifierForm is the form of a PKCE verifier (RFC 7636 section 4.1).
var verifierForm = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

// partLen is the length of each of the two parts of a refresh token.
var partLen = len(rand.Text())

// form reads the parameters of a request.
func form(r *http.Request) (url.Values, error) {
	b, err := body(r)
	if err != nil {
		return nil, err
	}
	q, err := url.ParseQuery(string(b))
	if err != nil || !once(q) {
		return nil, refuse("invalid_request", "the body must be a form (application/x-www-form-urlencoded) with each parameter once")
	}
	return q, nil
}

// token implements the token endpoint (RFC 6749 sections 4.1.3 and 6).
func (s *Server) token(w http.ResponseWriter, r *http.Request) error {
	q, err := form(r)
	if err != nil {
		return err
	}
	if !s.isResource(q.Get("resource")) {
		return refuse("invalid_target", "resource must be "+s.at(mcpPath))
	}
	_, err = s.cfg.Store.OAuthClient(r.Context(), q.Get("client_id"))
	if errors.Is(err, store.ErrNotFound) {
		return &fault{http.StatusUnauthorized, "invalid_client", "the client is not registered: register it again"}
	}
	if err != nil {
		return err
	}
	next := issue(s.cfg.KeyPrefix)
	var k store.Key
	switch q.Get("grant_type") {
	case "authorization_code":
		k, err = s.cfg.Store.UseCode(r.Context(), store.HashKey(q.Get("code")), func(g store.Grant) bool { return mayUse(g, q) }, newKey(s.cfg.KeyPrefix), next.hashes())
	case "refresh_token":
		used := split(q.Get("refresh_token"))
		next.family = used.family
		k, err = s.cfg.Store.RotateTokens(r.Context(), q.Get("client_id"), used.hashes(), next.hashes())
	default:
		return refuse("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
	}
	if errors.Is(err, store.ErrReused) {
		s.cfg.Log.WarnContext(r.Context(), "a code or refresh token was used twice: the application is disconnected", "client_id", q.Get("client_id"), "error", err)
	}
	if errors.Is(err, store.ErrReused) || errors.Is(err, store.ErrNotFound) {
		return refuse("invalid_grant", "the code or refresh token is invalid, expired, used or revoked, or is not of this client")
	}
	if err != nil {
		return err
	}
	if q.Get("grant_type") == "authorization_code" {
		s.cfg.Log.InfoContext(r.Context(), "application connected", "client_id", q.Get("client_id"), "key_id", k.ID)
	}
	lasts := store.AccessTokenTTL
	if k.ExpiresAt != nil {
		lasts = min(lasts, k.ExpiresAt.Sub(s.cfg.Now()))
	}
	write(w, http.StatusOK, map[string]any{
		"access_token": next.access, "token_type": "Bearer", "expires_in": int(lasts.Seconds()),
		"refresh_token": next.family + next.refresh, "scope": strings.Join(k.Scopes.V, " "),
	})
	return nil
}

// mayUse reports whether a token request may use the code of a grant. OAuth 2.1 leaves
// out redirect_uri, because the challenge binds the code; if it is there, it must be
// the one of the authorization request.
func mayUse(g store.Grant, q url.Values) bool {
	verifier := q.Get("code_verifier")
	sum := sha256.Sum256([]byte(verifier))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	return g.ClientID == q.Get("client_id") && (!q.Has("redirect_uri") || q.Get("redirect_uri") == g.RedirectURI) &&
		verifierForm.MatchString(verifier) && subtle.ConstantTimeCompare([]byte(challenge), []byte(g.Challenge)) == 1
}

// tokens are an access token, and the two parts of a refresh token.
type tokens struct{ access, family, refresh string }

// issue returns new tokens. An access token has the form of a key, so that scanners
// for leaked secrets recognise it.
func issue(brand string) tokens {
	return tokens{access: apikey.New("oauth", brand), family: rand.Text(), refresh: rand.Text()}
}

// split returns the parts of a refresh token.
func split(token string) tokens {
	n := min(len(token), partLen)
	return tokens{family: token[:n], refresh: token[n:]}
}

func (t tokens) hashes() store.Tokens {
	return store.Tokens{Access: store.HashKey(t.access), Family: store.HashKey(t.family), Refresh: store.HashKey(t.refresh)}
}

// newKey returns a key with a secret that is forgotten.
func newKey(brand string) store.Key {
	secret := apikey.New("oauth", brand)
	return store.Key{Hash: store.HashKey(secret), Prefix: apikey.Prefix(secret), Hint: apikey.Hint(secret)}
}

// revoke implements token revocation (RFC 7009). Either token of a connection ends it.
// The response to an unknown token is the same.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	q, err := form(r)
	if err != nil {
		return err
	}
	if q.Get("token") == "" || q.Get("client_id") == "" {
		return refuse("invalid_request", "token and client_id are required")
	}
	given := split(q.Get("token"))
	given.access = q.Get("token")
	if err := s.cfg.Store.RevokeGrant(r.Context(), q.Get("client_id"), given.hashes()); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	write(w, http.StatusOK, struct{}{})
	return nil
}
