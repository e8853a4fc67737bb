// Package docs serves the documentation at /docs: the guides, a page for each operation
// and webhook event, made from the contract, and Swagger UI at /docs/try. Each page is also
// served as Markdown, and /llms.txt and /llms-full.txt are for language models.
//
// It needs no key and no other server. Its policy lets the pages connect to this server
// only, and run no other script. Requests that a user tries out go to this server with the
// key that the user types in, which the page forgets when it is closed.
package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"mime"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/postroom/postroom/docs"
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
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// writeTimeout is how long a response may take to send.
const writeTimeout = time.Minute

// file is one served file.
type file struct {
	body      []byte
	gzipped   bool // the body is kept gzipped
	kind, tag string
}

func newFile(body []byte, kind string) *file {
	sum := sha256.Sum256(body)
	return &file{body: body, kind: kind, tag: `W/"` + hex.EncodeToString(sum[:8]) + `"`}
}

var layout = template.Must(template.ParseFS(pageFiles, "page/layout.html"))

// Handler serves GET and HEAD of /docs, everything below it, /llms.txt and /llms-full.txt,
// and passes all other requests to next. contract is the OpenAPI document.
func Handler(contract []byte, next http.Handler) (http.Handler, error) {
	files, err := readFiles()
	if err != nil {
		return nil, err
	}
	// Zstandard at its fastest level makes larger pages than gzip.
	compress, err := gzhttp.NewWrapper(gzhttp.EnableZstd(false))
	if err != nil {
		return nil, err
	}
	h := &handler{files: files, next: next, compress: compress, made: map[string]*file{}}
	// Read at the first request, so that the start does not wait for it.
	h.site = sync.OnceValues(func() (*site, error) { return newSite(contract) })
	return h, nil
}

type handler struct {
	files map[string]*file
	site  func() (*site, error)
	next  http.Handler

	compress func(http.Handler) http.HandlerFunc

	mu   sync.Mutex
	made map[string]*file // pages, by path
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, below := strings.CutPrefix(r.URL.Path, "/docs/")
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.next.ServeHTTP(w, r)
		return
	case r.URL.Path == "/docs/":
		http.Redirect(w, r, "../docs", http.StatusPermanentRedirect)
		return
	case r.URL.Path == "/docs":
		name = ""
	case r.URL.Path == "/llms.txt" || r.URL.Path == "/llms-full.txt":
		name = r.URL.Path[1:]
	case !below:
		h.next.ServeHTTP(w, r)
		return
	}
	if f := h.files[name]; f != nil {
		h.compress(f).ServeHTTP(w, r)
		return
	}
	s, err := h.site()
	if err != nil {
		http.Error(w, "the documentation cannot be read", http.StatusInternalServerError)
		return
	}
	f, err := h.page(s, name, r.URL.Query().Get("q"))
	switch {
	case err != nil:
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
	case f == nil:
		h.next.ServeHTTP(w, r)
	default:
		h.compress(f).ServeHTTP(w, r)
	}
}

// page returns a page, which is made at its first request, or nil.
func (h *handler) page(s *site, name, query string) (*file, error) {
	if name == "search" {
		return s.file(name, query)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.made[name]; f != nil {
		return f, nil
	}
	f, err := s.file(name, "")
	if f != nil {
		h.made[name] = f
	}
	return f, err
}

// Site returns the files of a static site with all pages but the search, by path. contract
// is the OpenAPI document.
func Site(contract []byte) (map[string][]byte, error) {
	s, err := newSite(contract)
	if err != nil {
		return nil, err
	}
	s.static = true
	files, err := readFiles()
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{
		"openapi.json": contract,
		"index.html":   []byte(`<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs"><title>Postroom</title><a href="docs">Postroom</a>`),
	}
	for _, name := range []string{"icon.svg", "docs.css", "docs.js"} {
		out["docs/"+name] = files[name].body
	}
	for _, name := range s.names() {
		f, err := s.file(name, "")
		if err != nil {
			return nil, err
		}
		at := path.Join("docs", name)
		switch {
		case strings.HasPrefix(name, "llms"):
			at = name
		case path.Ext(name) != ".md" && !strings.HasPrefix(name, "images/"):
			at += ".html"
		}
		out[at] = f.body
	}
	return out, nil
}

// names lists the pages and images.
func (s *site) names() []string {
	names := []string{"", "llms.txt", "llms-full.txt"}
	for name := range s.pages {
		names = append(names, name, name+".md")
	}
	for _, name := range images() {
		names = append(names, "images/"+name)
	}
	slices.Sort(names)
	return names
}

// view is what the layout shows.
type view struct {
	Root, Path, Title, Query string
	Groups                   []openGroup
	Body                     template.HTML
	Samples                  []sample
	Found                    []hit
	Next                     *page
	Static                   bool
}

type openGroup struct {
	group
	Open bool
}

// file makes a page, or returns nil.
func (s *site) file(name, query string) (*file, error) {
	const markdown, html = "text/markdown; charset=utf-8", "text/html; charset=utf-8"
	switch {
	case name == "llms.txt":
		return newFile([]byte(s.overview()), "text/plain; charset=utf-8"), nil
	case name == "llms-full.txt":
		return newFile([]byte(s.whole()), "text/plain; charset=utf-8"), nil
	case strings.HasPrefix(name, "images/"):
		body := image(strings.TrimPrefix(name, "images/"))
		if body == nil {
			return nil, nil //nolint:nilnil // the page does not exist
		}
		return newFile(body, mime.TypeByExtension(path.Ext(name))), nil
	}
	if p := s.pages[strings.TrimSuffix(name, ".md")]; p != nil && strings.HasSuffix(name, ".md") {
		return newFile([]byte(p.plain()), markdown), nil
	}
	v := view{Root: strings.Repeat("../", strings.Count("docs/"+name, "/")), Path: name, Query: query, Static: s.static}
	if name == "" {
		v.Root = ""
	}
	text, p := "", s.pages[name]
	switch {
	case name == "":
		var err error
		if text, err = s.start(); err != nil {
			return nil, err
		}
		v.Title = "Documentation"
	case name == "search":
		v.Title, v.Found = "Search", s.search(query)
		text = "# Search\n\nNo page has all these words."
		if len(v.Found) > 0 {
			text = "# Search\n"
		}
	case p != nil:
		v.Title, v.Samples, text, v.Next = p.Title, p.Samples, p.Markdown, s.after(p)
	default:
		return nil, nil //nolint:nilnil // the page does not exist
	}
	for i, g := range s.groups {
		v.Groups = append(v.Groups, openGroup{g, p != nil && g.Name == p.group || p == nil && i == 0})
	}
	var err error
	if v.Body, err = s.html(text); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := layout.Execute(&out, v); err != nil {
		return nil, err
	}
	return newFile(out.Bytes(), html), nil
}

// guideLink is a link of the list of guides to a guide.
var guideLink = regexp.MustCompile(`\]\(([a-z-]+)\.md`)

// start is the first page: the guides by reader, and the introduction to the API.
func (s *site) start() (string, error) {
	guides, err := docs.Guides.ReadFile("README.md")
	if err != nil {
		return "", fmt.Errorf("read the list of guides: %w", err)
	}
	return guideLink.ReplaceAllString(string(guides), "](docs/guides/$1") + "\nEvery page is also Markdown: add `.md` to its address. For language models there are [llms.txt](llms.txt) and " +
		"[llms-full.txt](llms-full.txt), for generators [openapi.json](openapi.json).\n\n## The API\n\n" + s.contract.Info.Description, nil
}

// after returns the next page of the same part of the menu, or nil.
func (s *site) after(p *page) *page {
	for _, g := range s.groups {
		if i := slices.Index(g.Pages, p); i >= 0 && i+1 < len(g.Pages) {
			return g.Pages[i+1]
		}
	}
	return nil
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
			if e.Name() == "layout.html" {
				continue
			}
			body, err := from.fs.ReadFile(path.Join(from.dir, e.Name()))
			if err != nil {
				return nil, fmt.Errorf("read the reference: %w", err)
			}
			name, gzipped := strings.CutSuffix(e.Name(), ".gz")
			f := newFile(body, mime.TypeByExtension(path.Ext(name)))
			f.gzipped = gzipped
			name = strings.TrimSuffix(name, ".html") // a page has no extension
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
	var body io.Reader = bytes.NewReader(f.body)
	if f.gzipped {
		z, err := gzip.NewReader(body)
		if err != nil {
			http.Error(w, "the file cannot be decompressed", http.StatusInternalServerError)
			return
		}
		body = z
	}
	_, _ = io.Copy(w, body) //nolint:gosec // the data is our own; the client may have gone
}
