package oauth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/postroom/postroom/store"
)

// maxRequest is the maximum length of the query of an authorization request.
const maxRequest = 8 << 10

// Request is an authorization request that is valid (RFC 6749 section 4.1.1).
type Request struct {
	Client      store.OAuthClient
	RedirectURI string
	// Fields are the parameters, for the form of the consent page.
	Fields url.Values
	// AsksSend says that the application asks for more than to read.
	AsksSend bool
}

// Host is where the person goes after the decision.
func (r Request) Host() string { return Host(r.RedirectURI) }

// FormAction is the source for the form-action directive of the page's content
// security policy: browsers check it when the response to a form redirects.
func (r Request) FormAction() string {
	u, err := url.Parse(r.RedirectURI)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || strings.HasPrefix(u.Host, "[") { // the directive knows no IPv6 addresses
		scheme, _, _ := strings.Cut(r.RedirectURI, ":")
		return strings.ToLower(scheme) + ":"
	}
	return u.Scheme + "://" + u.Host
}

// Problem says what is wrong with an authorization request. The person reads it:
// applications are not trusted, so that an error never redirects to them (RFC 9700
// section 4.11.2).
type Problem struct{ Text string }

func (p *Problem) Error() string { return p.Text }

// parameters are those of an authorization request that are kept in the form.
var parameters = []string{"response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method", "state", "scope", "resource"}

// Request checks an authorization request. Its error is a *Problem if the request is
// at fault.
func (s *Server) Request(ctx context.Context, q url.Values) (Request, error) {
	r := Request{RedirectURI: q.Get("redirect_uri"), Fields: url.Values{}}
	for _, name := range parameters {
		if q.Has(name) {
			r.Fields[name] = q[name]
		}
	}
	if !once(r.Fields) {
		return r, &Problem{"A parameter occurs twice."}
	}
	if len(r.Fields.Encode()) > maxRequest {
		return r, &Problem{"The request is too long."}
	}
	var err error
	r.Client, err = s.cfg.Store.OAuthClient(ctx, q.Get("client_id"))
	if errors.Is(err, store.ErrNotFound) {
		return r, &Problem{"The application is not registered here, or no longer. Remove the connection in the application and add it again."}
	}
	if err != nil {
		return r, err
	}
	if !registered(r.Client.RedirectURIs.V, r.RedirectURI) {
		return r, &Problem{"The application did not register the address that it wants to return to (redirect_uri)."}
	}
	if q.Get("response_type") != "code" {
		return r, &Problem{"The application must ask for a code (response_type=code)."}
	}
	// RFC 7636 section 4.2; "plain" and requests without a challenge are refused.
	sum, err := base64.RawURLEncoding.Strict().DecodeString(q.Get("code_challenge"))
	if q.Get("code_challenge_method") != "S256" || err != nil || len(sum) != 32 || strings.ContainsAny(q.Get("code_challenge"), "\r\n") {
		return r, &Problem{"The application must use PKCE with the method S256 (code_challenge)."}
	}
	if !s.isResource(q.Get("resource")) {
		return r, &Problem{"The application asks for access to another server (resource)."}
	}
	scopes := strings.Fields(q.Get("scope"))
	r.AsksSend = len(scopes) == 0 || slices.Contains(scopes, scopeSend)
	return r, nil
}

// Approve stores what a person of the account approved, and returns the address to
// redirect to.
func (s *Server) Approve(ctx context.Context, r Request, accountID int64, rights store.Rights) (string, error) {
	code := rand.Text()
	err := s.cfg.Store.AddGrant(ctx, store.Grant{
		AccountID: accountID, ClientID: r.Client.ID, RedirectURI: r.RedirectURI, Resource: s.at(mcpPath), Challenge: r.Fields.Get("code_challenge"),
		Rights: store.JSON[store.Rights]{V: rights}, CodeHash: store.HashKey(code),
	})
	return s.redirect(r, "code", code), err
}

// Deny returns the address to redirect to after a person refused.
func (s *Server) Deny(r Request) string { return s.redirect(r, "error", "access_denied") }

// redirect returns the redirect URI with a result, the state of the application, and
// the issuer (RFC 9207), which lets it detect a mix-up of servers.
func (s *Server) redirect(r Request, name, value string) string {
	q := url.Values{name: {value}, "iss": {s.issuer()}}
	if r.Fields.Has("state") {
		q.Set("state", r.Fields.Get("state"))
	}
	sep := "?"
	if strings.Contains(r.RedirectURI, "?") {
		sep = "&"
	}
	return r.RedirectURI + sep + q.Encode()
}
