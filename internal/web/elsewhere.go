package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/postroom/postroom/store"
)

// elsewhere passes all other paths to the API. A browser that gets a 404 from the
// API sees an error page.
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

// wantsPage reports whether a browser requests a page: its Accept header starts
// with HTML. Paths below /v1 always belong to the API.
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

// unlessMissing passes a response through unless it is a JSON 404 of the API. It
// drops that, with its headers.
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

// Unwrap lets http.ResponseController reach the connection.
func (u *unlessMissing) Unwrap() http.ResponseWriter { return u.ResponseWriter }
