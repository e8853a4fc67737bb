package handlers

import (
	"bytes"
	"context"
	"errors"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/netguard"
)

// CallMcp implements POST /mcp. The MCP server reads the request again and
// makes its calls as the caller. This method adds the check of Origin and the
// error body that all errors share.
func (a *API) CallMcp(ctx context.Context, _ gen.FreeObject, _ gen.CallMcpParams, w http.ResponseWriter) error {
	r := httpapi.Request(ctx)
	if a.mcp == nil {
		return httpapi.ErrUnavailable
	}
	if err := a.checkOrigin(r); err != nil {
		return err
	}
	response := &plainErrors{ResponseWriter: w}
	a.mcp.ServeHTTP(response, r.WithContext(httpapi.AsKey(ctx, httpapi.Caller(ctx))))
	return response.fault()
}

// checkOrigin refuses requests from foreign pages in a browser, which may have
// reached a local server through DNS rebinding. Programs send no Origin header.
func (a *API) checkOrigin(r *http.Request) error {
	if local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr); local != nil && isLoopback(local.String()) &&
		httpapi.SpecialOf(r.Context()).CalledHost == "" && !isLoopback(r.Host) && !strings.EqualFold(hostOf(r.Host), a.baseURL().Hostname()) {
		return httpapi.Forbidden(gen.ErrorCodeOriginNotAllowed, "this server is not called by the name in Host")
	}
	for _, origin := range r.Header.Values("Origin") {
		if !a.ownOrigin(r, origin) {
			return httpapi.Forbidden(gen.ErrorCodeOriginNotAllowed, "pages of this Origin may not call this server")
		}
	}
	return nil
}

// ownOrigin reports whether origin belongs to this server: to its base URL, or
// to the requested address if that is an IP address or localhost. Anyone could
// control another name.
func (a *API) ownOrigin(r *http.Request, origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	base := a.baseURL()
	if strings.EqualFold(u.Scheme, base.Scheme) && strings.EqualFold(u.Host, base.Host) {
		return true
	}
	_, err = netip.ParseAddr(hostOf(r.Host))
	return strings.EqualFold(u.Host, r.Host) && (err == nil || isLoopback(r.Host))
}

func (a *API) baseURL() *url.URL {
	if a.cfg.BaseURL == nil {
		return &url.URL{}
	}
	return a.cfg.BaseURL
}

// hostOf returns a host without its port.
func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func isLoopback(hostport string) bool {
	host := hostOf(hostport)
	ip, err := netip.ParseAddr(host)
	return err == nil && netguard.PlainIP(ip).IsLoopback() || strings.EqualFold(host, "localhost")
}

// plainErrors withholds errors that another handler writes as plain text, so that they get
// the body that all errors share. JSON errors of the MCP protocol pass.
type plainErrors struct {
	http.ResponseWriter
	held int // status
	text bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (w *plainErrors) WriteHeader(status int) {
	kind, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type")) // no Content-Type: withheld
	if status >= http.StatusBadRequest && kind != "application/json" {
		w.held = status
		w.Header().Del("Content-Type")
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *plainErrors) Write(b []byte) (int, error) {
	if w.held != 0 {
		w.text.Write(b[:min(len(b), max(0, maxMCPFault-w.text.Len()))])
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *plainErrors) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// fault returns the withheld error.
func (w *plainErrors) fault() error {
	switch {
	case w.held == 0:
		return nil
	case w.held == http.StatusBadRequest:
		return httpapi.Invalid("", "MCP: %s", strings.TrimSpace(w.text.String()))
	case w.held >= http.StatusInternalServerError:
		return errors.New("MCP server: " + strings.TrimSpace(w.text.String()))
	}
	return httpapi.ErrUnavailable // it is shutting down
}
