package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/postroom/postroom/store"
)

// elsewhere has the API answer a path that is no page. A browser that asks for
// what is not there either gets a page that says so.
func (d *Dashboard) elsewhere(w http.ResponseWriter, r *http.Request) {
	if !wantsPage(r) {
		d.cfg.API.ServeHTTP(w, r)
		return
	}
	watched := &unlessMissing{ResponseWriter: w}
	d.cfg.API.ServeHTTP(watched, r)
	if watched.missing {
		d.chain(d.noPage).ServeHTTP(w, r)
	}
}

// wantsPage says whether somebody looks at a path in a browser, which asks for
// HTML before all else. What is below /v1 is the API's, whoever asks.
func wantsPage(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.Path != "/v1" && !strings.HasPrefix(r.URL.Path, "/v1/") &&
		strings.HasPrefix(r.Header.Get("Accept"), "text/html")
}

func (d *Dashboard) noPage(p *page) error {
	if err := p.recognise(); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return errNoPage
}

// unlessMissing is an answer that goes out unless it is the 404 of the API, in
// JSON: that is left out, with what was to be its header.
type unlessMissing struct {
	http.ResponseWriter
	missing bool
}

// WriteHeader implements http.ResponseWriter.
func (u *unlessMissing) WriteHeader(status int) {
	if status == http.StatusNotFound && strings.HasPrefix(u.Header().Get("Content-Type"), "application/json") {
		u.missing = true
		u.Header().Del("Content-Type")
		u.Header().Del("Content-Length")
		return
	}
	u.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (u *unlessMissing) Write(b []byte) (int, error) {
	if u.missing {
		return len(b), nil
	}
	return u.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (u *unlessMissing) Unwrap() http.ResponseWriter { return u.ResponseWriter }
