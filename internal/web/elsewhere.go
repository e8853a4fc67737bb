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
	watched := &replacing{ResponseWriter: w, drops: func(status int) bool {
		return status == http.StatusNotFound && strings.HasPrefix(w.Header().Get("Content-Type"), "application/json")
	}}
	d.cfg.API.ServeHTTP(watched, r)
	if watched.dropped {
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

// replacing passes a response through, unless drops reports true for its status. It drops
// that with its body.
type replacing struct {
	http.ResponseWriter
	drops   func(status int) bool
	dropped bool
}

// WriteHeader implements http.ResponseWriter.
func (w *replacing) WriteHeader(status int) {
	if w.drops(status) {
		w.dropped = true
		w.Header().Del("Content-Type")
		w.Header().Del("Content-Length")
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *replacing) Write(b []byte) (int, error) {
	if w.dropped {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *replacing) Unwrap() http.ResponseWriter { return w.ResponseWriter }
