// Package docs serves the reference of the API at /docs: Swagger UI, from this program
// alone, with the contract that the API serves at /openapi.json. At /llms.txt it serves a
// page for language models, built from the contract.
//
// It needs no key. Its policy lets the page connect to this server only, and run no other
// script. Requests that a user tries out go to this server with the key that the user types
// in, which the page forgets when it is closed.
package docs

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/postroom/postroom/internal/packed"
)

//go:embed page
var pageFiles embed.FS

// viewerFiles is Swagger UI, added by scripts/vendor-ui.
//
//go:embed swagger-ui/*.gz
var viewerFiles embed.FS

// policy lets the page use only what this server serves. The viewer's icons are images in its
// style sheet (data:), and it sets the style of single elements.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// writeTimeout is how long a response may take to send.
const writeTimeout = time.Minute

// file is one served file.
type file struct {
	body      *packed.Body
	kind, tag string
}

// Handler serves GET and HEAD of /docs, everything below it, and /llms.txt, and passes all
// other requests to next. contract is the OpenAPI document.
func Handler(contract []byte, next http.Handler) (http.Handler, error) {
	files, err := readFiles()
	if err != nil {
		return nil, err
	}
	// Created at the first request, so that the start does not wait for it.
	page := sync.OnceValues(func() (*packed.Body, error) {
		text, err := overview(contract)
		return packed.New([]byte(text)), err
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := files[strings.TrimPrefix(r.URL.Path, "/docs/")]
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			f = nil
		case r.URL.Path == "/docs":
			f = files["index.html"]
		case r.URL.Path == "/docs/":
			http.Redirect(w, r, "../docs", http.StatusPermanentRedirect)
			return
		case r.URL.Path == "/llms.txt":
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			body, err := page()
			if err != nil {
				http.Error(w, "the contract cannot be read", http.StatusInternalServerError)
				return
			}
			body.Serve(w, r)
			return
		case !strings.HasPrefix(r.URL.Path, "/docs/"):
			f = nil
		}
		if f == nil {
			next.ServeHTTP(w, r)
			return
		}
		f.ServeHTTP(w, r)
	}), nil
}

// readFiles reads all files into a map by name.
func readFiles() (map[string]*file, error) {
	files := map[string]*file{}
	for _, from := range []struct {
		fs  embed.FS
		dir string
	}{{pageFiles, "page"}, {viewerFiles, "swagger-ui"}} {
		entries, err := from.fs.ReadDir(from.dir)
		if err != nil {
			return nil, fmt.Errorf("read the reference: %w", err)
		}
		for _, e := range entries {
			body, err := from.fs.ReadFile(path.Join(from.dir, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("read the reference: %w", err)
			}
			name, gzipped := strings.CutSuffix(e.Name(), ".gz")
			sum := sha256.Sum256(body)
			f := &file{body: packed.New(body), kind: mime.TypeByExtension(path.Ext(name)), tag: `W/"` + hex.EncodeToString(sum[:8]) + `"`}
			if gzipped {
				f.body = packed.FromGzip(body)
			}
			files[name] = f
		}
	}
	return files, nil
}

// ServeHTTP implements http.Handler.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // tests may have no socket
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-cache") // revalidated with the tag
	h.Set("Content-Type", f.kind)
	h.Set("ETag", f.tag)
	if r.Header.Get("If-None-Match") == f.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	f.body.Serve(w, r)
}
