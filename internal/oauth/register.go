package oauth

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/publicsuffix"

	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/store"
)

const (
	// maxName is the maximum length of an application's name in characters.
	maxName = 60
	// maxRedirects and maxRedirect are how many redirect URIs an application may have,
	// and how long each may be.
	maxRedirects, maxRedirect = 10, 1000
)

// register implements dynamic client registration (RFC 7591). It keeps the name and
// the redirect URIs. Every client is a public one, whatever it asked for: the response
// says so (section 3.2.1).
func (s *Server) register(w http.ResponseWriter, r *http.Request) error {
	b, err := body(r)
	if err != nil {
		return err
	}
	var asked struct {
		Name         string   `json:"client_name"`
		RedirectURIs []string `json:"redirect_uris"`
	}
	if err := json.Unmarshal(b, &asked); err != nil {
		return refuse("invalid_client_metadata", "the body must be a JSON object with redirect_uris, a list of texts")
	}
	if len(asked.RedirectURIs) == 0 || len(asked.RedirectURIs) > maxRedirects {
		return refuse("invalid_redirect_uri", "redirect_uris needs 1 to 10 addresses")
	}
	if !allAllowed(asked.RedirectURIs) {
		return refuse("invalid_redirect_uri", "redirect_uris must be https, http on a loopback host, or a scheme that is a domain in reverse such as com.example.app, without user, fragment or spaces")
	}
	name := cleanName(asked.Name)
	switch {
	case name == "" && asked.Name != "":
		return refuse("invalid_client_metadata", "client_name has no visible character")
	case name == "":
		name = "Application at " + Host(asked.RedirectURIs[0])
	}
	if err := s.take(w, r, store.RateRegister, "all", maxAllRegistrations); err != nil {
		return err
	}
	c, err := s.cfg.Store.RegisterClient(r.Context(), name, asked.RedirectURIs)
	if err != nil {
		return err
	}
	s.cfg.Log.InfoContext(r.Context(), "application registered", "client_id", c.ID)
	write(w, http.StatusCreated, map[string]any{
		"client_id":                  c.ID,
		"client_id_issued_at":        c.CreatedAt.Unix(),
		"client_name":                c.Name,
		"redirect_uris":              c.RedirectURIs.V,
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"response_types":             []string{"code"},
		"token_endpoint_auth_method": "none",
		"scope":                      scopeRead + " " + scopeSend,
	})
	return nil
}

// cleanName returns a name without the characters that are invisible or change the
// direction of a text, on one line, cut to maxName characters.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == '\u2800': // the Braille pattern without dots
			return ' '
		case !unicode.IsPrint(r), plaintext.IsInvisible(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	runes := []rune(strings.Join(strings.Fields(name), " "))
	return strings.TrimSpace(string(runes[:min(len(runes), maxName)]))
}

var (
	hostForm = regexp.MustCompile(`^([a-z0-9-]+(\.[a-z0-9-]+)*\.?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$`)
	// schemeForm is a domain in reverse (RFC 8252 section 7.1): other programs and the
	// browser itself act on schemes without a dot.
	schemeForm = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z0-9-]+)+$`)
	// uriForm has no spaces, controls, quotes, brackets, commas, semicolons or backslashes.
	uriForm = regexp.MustCompile("^[a-zA-Z0-9-._~:/?\\[\\]@!$&()*+=%]+$")
)

// knownSchemes are those of applications that have no domain in theirs.
var knownSchemes = []string{"cursor"}

// allAllowed reports whether applications may register all of these redirect URIs.
func allAllowed(uris []string) bool {
	return !slices.ContainsFunc(uris, func(uri string) bool { return !allowed(uri) })
}

// allowed reports whether an application may register a redirect URI: https, http on a
// loopback host, or a scheme of its own domain (RFC 8252 section 7).
func allowed(uri string) bool {
	if len(uri) > maxRedirect || !uriForm.MatchString(uri) {
		return false
	}
	u, err := url.Parse(uri)
	if err != nil || u.User != nil || strings.Contains(u.Host, "@") {
		return false
	}
	switch u.Scheme {
	case "https":
		return hostForm.MatchString(strings.ToLower(u.Host))
	case "http":
		return isLoopback(u) && hostForm.MatchString(u.Host)
	}
	return (isReverseDomain(u.Scheme) || slices.Contains(knownSchemes, u.Scheme)) &&
		(u.Host == "" || hostForm.MatchString(strings.ToLower(u.Host)))
}

// isReverseDomain reports whether a scheme is a domain in reverse, below a top-level
// domain that exists: "x-apple.systempreferences" is of the system, not of an application.
func isReverseDomain(scheme string) bool {
	top, _, _ := strings.Cut(scheme, ".")
	_, exists := publicsuffix.PublicSuffix("any." + top)
	return exists && schemeForm.MatchString(scheme)
}

func isLoopback(u *url.URL) bool {
	return slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())
}

// registered reports whether uri is one of the redirect URIs of an application. The
// match is exact, but a program on the computer of the person may listen on any port
// (RFC 8252 section 7.3).
func registered(uris []string, uri string) bool {
	return allowed(uri) && slices.ContainsFunc(uris, func(known string) bool {
		if known == uri {
			return true
		}
		a, okA := withoutPort(known)
		b, okB := withoutPort(uri)
		return okA && okB && a == b
	})
}

// withoutPort returns a redirect URI of a loopback host without the port. ok is false
// for other URIs.
func withoutPort(uri string) (_ string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || !isLoopback(u) {
		return "", false
	}
	u.Host = u.Hostname()
	return u.String(), true
}

// Host returns where a redirect URI leads, for people to read.
func Host(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return "an unknown address" // it was parsed when it was registered
	case u.Scheme == "https":
		return u.Host
	case u.Scheme == "http":
		return "this computer (" + u.Hostname() + ")"
	}
	return "the program for " + u.Scheme + ": links"
}
