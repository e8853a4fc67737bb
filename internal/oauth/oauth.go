// Package oauth is the authorization server for remote MCP clients: OAuth 2.1
// (draft-ietf-oauth-v2-1) as the authorization part of the Model Context Protocol asks
// for it.
//
// An application finds the server by its metadata (RFC 9728, RFC 8414), registers
// itself (RFC 7591), and sends a person to the consent page, which package web shows.
// What the person approves becomes an API key with a secret that is not kept. The
// application gets tokens for this key, which work at the MCP endpoint only. So all
// limits, policies and records of keys apply, and revoking the key ends the connection
// at once.
//
// Applications are public clients: they have no secret, and every code is bound to a
// PKCE challenge (RFC 7636, S256 only). What registers is not trusted. A request with
// an error shows a page and never redirects, and the consent page says where it leads.
package oauth

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/store"
)

// AuthorizePath is the path of the consent page.
const AuthorizePath = "/oauth/authorize"

const (
	registerPath = "/oauth/register"
	tokenPath    = "/oauth/token"
	revokePath   = "/oauth/revoke"
	mcpPath      = "/mcp"
	resourcePath = "/.well-known/oauth-protected-resource"
	serverPath   = "/.well-known/oauth-authorization-server"
)

const (
	// maxBody is the maximum size of a request in bytes.
	maxBody = 16 << 10
	// bodyTimeout bounds reading a request.
	bodyTimeout = 10 * time.Second
	// maxRegistrations and maxTokenCalls are how many requests a network may make in a
	// minute, and maxAllRegistrations how many applications all may register.
	maxRegistrations, maxTokenCalls = 10, 60
	maxAllRegistrations             = 300
)

// The scopes that applications can ask for.
const (
	scopeRead = "read"
	scopeSend = "send"
)

// Config configures a Server. All fields but TrustedProxies are required.
type Config struct {
	Store *store.Store
	// BaseURL is the public URL of the installation. It has no path.
	BaseURL *url.URL
	// KeyPrefix begins the access tokens, as it begins keys.
	KeyPrefix string
	// TrustedProxies are the networks whose X-Forwarded-For header is trusted.
	TrustedProxies []netip.Prefix
	// Now is the clock.
	Now func() time.Time
	// Log records connections, and tokens that are used twice.
	Log *slog.Logger
}

// Server is the authorization server.
type Server struct {
	cfg Config
	mux *http.ServeMux
}

// New returns a Server.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, mux: http.NewServeMux()}
	for _, path := range []string{resourcePath, resourcePath + mcpPath} {
		s.mux.Handle("GET "+path, s.document(s.resourceMetadata()))
	}
	s.mux.Handle("GET "+serverPath, s.document(s.serverMetadata()))
	s.mux.Handle("POST "+registerPath, s.endpoint(store.RateRegister, maxRegistrations, s.register))
	s.mux.Handle("POST "+tokenPath, s.endpoint(store.RateToken, maxTokenCalls, s.token))
	s.mux.Handle("POST "+revokePath, s.endpoint(store.RateToken, maxTokenCalls, s.revoke))
	return s
}

// Handler serves the endpoints that applications call, and passes all other requests
// to next.
func (s *Server) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := s.mux.Handler(r); pattern == "" {
			next.ServeHTTP(w, r)
			return
		}
		s.mux.ServeHTTP(w, r)
	})
}

// Access returns what the API needs to accept access tokens.
func (s *Server) Access() *httpapi.OAuth {
	return &httpapi.OAuth{Resource: s.at(mcpPath), Metadata: s.at(resourcePath + mcpPath)}
}

func (s *Server) at(path string) string { return s.cfg.BaseURL.JoinPath(path).String() }

// issuer identifies this server. It has no path, not even "/".
func (s *Server) issuer() string { return s.cfg.BaseURL.Scheme + "://" + s.cfg.BaseURL.Host }

// resourceMetadata describes the MCP endpoint (RFC 9728 section 2).
func (s *Server) resourceMetadata() map[string]any {
	return map[string]any{
		"resource":                 s.at(mcpPath),
		"resource_name":            "Postroom",
		"authorization_servers":    []string{s.issuer()},
		"scopes_supported":         []string{scopeRead, scopeSend},
		"bearer_methods_supported": []string{"header"},
		"resource_documentation":   s.at("/docs/guides/mcp"),
	}
}

// serverMetadata describes this server (RFC 8414 section 2, RFC 9207 section 3).
func (s *Server) serverMetadata() map[string]any {
	none := []string{"none"}
	return map[string]any{
		"issuer":                                         s.issuer(),
		"authorization_endpoint":                         s.at(AuthorizePath),
		"token_endpoint":                                 s.at(tokenPath),
		"registration_endpoint":                          s.at(registerPath),
		"revocation_endpoint":                            s.at(revokePath),
		"scopes_supported":                               []string{scopeRead, scopeSend},
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported":          none,
		"revocation_endpoint_auth_methods_supported":     none,
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
}

func (s *Server) document(metadata map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, metadata) }
}

// fault is an error response (RFC 6749 section 5.2, RFC 7591 section 3.2.2).
type fault struct {
	status      int
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (f *fault) Error() string { return f.Code + ": " + f.Description }

func refuse(code, description string) *fault { return &fault{http.StatusBadRequest, code, description} }

// endpoint wraps an endpoint that applications call with its limits and its errors.
func (s *Server) endpoint(kind store.RateKind, limit int, f func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // socket deadline, so wall clock; test writers do not support it
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		network := netguard.ClientNetwork(httpapi.ClientIP(r, s.cfg.TrustedProxies)).String()
		err := s.take(w, r, kind, network, limit)
		if err == nil {
			err = f(w, r)
		}
		if err != nil {
			s.fail(w, r, err)
		}
	}
}

// take counts a request. The error says that there were too many in this minute.
func (s *Server) take(w http.ResponseWriter, r *http.Request, kind store.RateKind, who string, limit int) error {
	rate, err := s.cfg.Store.TakeRate(r.Context(), kind, who, limit)
	if err != nil || !rate.Refused {
		return err
	}
	wait := max(1, int(math.Ceil(rate.Ends.Sub(s.cfg.Now()).Seconds())))
	w.Header().Set("Retry-After", strconv.Itoa(wait))
	return &fault{http.StatusTooManyRequests, "temporarily_unavailable", "too many requests: try again in a minute"}
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	f, known := errors.AsType[*fault](err)
	switch {
	case known:
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFull), r.Context().Err() != nil:
		w.Header().Set("Retry-After", "1")
		f = &fault{http.StatusServiceUnavailable, "temporarily_unavailable", "the service is temporarily unavailable: try again"}
	default:
		s.cfg.Log.ErrorContext(r.Context(), "OAuth request failed", "path", r.URL.Path, "error", err)
		f = &fault{http.StatusInternalServerError, "server_error", "internal error"}
	}
	write(w, f.status, f)
}

// write writes a response as JSON.
func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have disconnected
}

// body reads the request.
func body(r *http.Request) ([]byte, error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, &fault{http.StatusRequestEntityTooLarge, "invalid_request", "the request is larger than 16 KiB, or was cut off"}
	}
	return b, nil
}

// once reports whether each parameter occurs at most once, as RFC 6749 section 3
// demands.
func once(q url.Values) bool {
	for _, values := range q {
		if len(values) > 1 {
			return false
		}
	}
	return true
}

// isResource reports whether a resource indicator (RFC 8707) means the MCP endpoint.
// Without one it does, because this server serves no other resource.
func (s *Server) isResource(indicator string) bool {
	own := s.at(mcpPath)
	return slices.Contains([]string{"", own, own + "/"}, indicator)
}
