package docs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/gzhttp"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/docs"
)

// api is a fake API: it serves the contract, and accepts one key.
type api struct {
	mu    sync.Mutex
	calls []string // method, path and key
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.calls = append(a.calls, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization"))
	a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/openapi.json":
		contract := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(gen.OpenAPI()) }
		gzhttp.GzipHandler(http.HandlerFunc(contract)).ServeHTTP(w, r)
	case r.Header.Get("Authorization") == "Bearer sk_live_right":
		_, _ = io.WriteString(w, `{"plan":"served by the API"}`)
	default:
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"code":"unauthorized"}}`)
	}
}

// called returns the calls that were not for the contract.
func (a *api) called() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []string
	for _, c := range a.calls {
		if !strings.Contains(c, "/openapi.json") {
			all = append(all, c)
		}
	}
	return all
}

// serve serves the reference in front of an API.
func serve(t *testing.T) (*api, string) {
	t.Helper()
	a := &api{}
	h, err := docs.Handler(gen.OpenAPI(), a)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return a, srv.URL
}

// get requests a file with an Accept-Encoding, and with If-None-Match if tag is set.
func get(t *testing.T, url, accept, tag string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Encoding", accept)
	if tag != "" {
		req.Header.Set("If-None-Match", tag)
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

func TestFilesAreServedWithoutAKey(t *testing.T) {
	t.Parallel()
	a, url := serve(t)
	for path, kind := range map[string]string{
		"/docs": "text/html", "/docs/docs.js": "text/javascript", "/docs/docs.css": "text/css", "/docs/icon.svg": "image/svg+xml",
		"/docs/guides/tour": "text/html", "/docs/guides/tour.md": "text/markdown", "/docs/api/createInbox": "text/html",
		"/docs/events/message.received": "text/html", "/docs/search?q=inbox": "text/html", "/docs/images/peers.svg": "image/svg+xml",
		"/llms.txt": "text/plain", "/llms-full.txt": "text/plain", "/docs/try": "text/html",
		"/docs/swagger-ui.css": "text/css", "/docs/swagger-ui-bundle.js": "text/javascript",
	} {
		for _, accept := range []string{"gzip", "identity"} {
			res, body := get(t, url+path, accept, "")
			if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), kind) || body == "" {
				t.Errorf("GET %s: %s %s with %d bytes", path, res.Status, res.Header.Get("Content-Type"), len(body))
			}
			compressed := accept == "gzip" && len(body) > 1024
			if got := res.Header.Get("Content-Encoding") == "gzip"; got && accept != "gzip" || !got && compressed {
				t.Errorf("%s: Accept-Encoding %s got %q with %d bytes", path, accept, res.Header.Get("Content-Encoding"), len(body))
			}
			if res.Header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s: a cache may serve it to other clients", path)
			}
			if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe-eval") {
				t.Errorf("%s: policy %q", path, csp)
			}
			if again, _ := get(t, url+path, accept, res.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
				t.Errorf("%s is sent again although it has not changed: %s", path, again.Status)
			}
		}
	}
	if calls := a.called(); len(calls) != 0 {
		t.Errorf("the API was called: %v", calls)
	}
}

// TestTheViewerIsTheVendoredOne decompresses the viewer and compares its checksums.
func TestTheViewerIsTheVendoredOne(t *testing.T) {
	t.Parallel()
	_, url := serve(t)
	sums, err := os.ReadFile("swagger-ui/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		_, body := get(t, url+"/docs/"+name, "identity", "")
		if sum := sha256.Sum256([]byte(body)); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s differs from its checksum", name)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d checksums", n)
	}
	for _, licence := range []string{"LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"} {
		if _, err := os.Stat("swagger-ui/" + licence); err != nil {
			t.Error(err)
		}
	}
}

func TestEverythingElseIsTheAPIs(t *testing.T) {
	t.Parallel()
	a, url := serve(t)
	for _, path := range []string{"/", "/v1/inboxes", "/docs.json", "/docs/none.js", "/docs/layout", "/docs/api/none", "/docs/guides/../try", "/docs/images/none.png", "//docs", "/v1//x/../y", "/docs/page/docs.js"} {
		if res, _ := get(t, url+path, "identity", ""); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("GET %s: %s", path, res.Status)
		}
		if calls := a.called(); len(calls) == 0 || calls[len(calls)-1] != "GET "+path+" " {
			t.Errorf("%s reached the API as %v", path, calls)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/docs", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if calls := a.called(); calls[len(calls)-1] != "POST /docs " {
		t.Errorf("POST reached the API as %v", calls)
	}
}

// TestLlmsTxtListsEachOperationOnce checks the page for language models.
func TestLlmsTxtListsEachOperationOnce(t *testing.T) {
	t.Parallel()
	_, url := serve(t)
	res, text := get(t, url+"/llms.txt", "identity", "")
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(text, "# Postroom\n\n> ") || len(text) > 20<<10 {
		t.Errorf("llms.txt: %s with %d bytes:\n%.300s", res.Status, len(text), text)
	}
	var contract struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(gen.OpenAPI(), &contract); err != nil {
		t.Fatal(err)
	}
	n := 0
	for path, operations := range contract.Paths {
		for method, raw := range operations {
			var op struct {
				OperationID string `json:"operationId"`
			}
			if json.Unmarshal(raw, &op) != nil || op.OperationID == "" {
				continue // the shared parameters
			}
			n++
			if got := strings.Count(text, "](/docs/api/"+op.OperationID+".md): "+strings.ToUpper(method)+" "+path); got != 1 {
				t.Errorf("%s %s is listed %d times", method, path, got)
			}
		}
	}
	if lines := strings.Count(text, "](/docs/api/"); n < 60 || lines != n {
		t.Errorf("%d lines for %d operations", lines, n)
	}
	if want := "- [Create an inbox](/docs/api/createInbox.md): POST /v1/inboxes (scope: send or admin)\n"; !strings.Contains(text, want) {
		t.Errorf("it does not contain %q", want)
	}
}

// TestLinksLeadToPages follows every link and image of every page.
func TestLinksLeadToPages(t *testing.T) {
	t.Parallel()
	_, base := serve(t)
	seen := map[string]bool{}
	link := regexp.MustCompile(` (?:href|src)="([^"]*)"`)
	id := regexp.MustCompile(` id="([^"]+)"`)
	pages, ids := map[string]string{}, map[string]map[string]bool{}
	var open func(path string)
	open = func(path string) {
		if seen[path] {
			return
		}
		seen[path] = true
		res, body := get(t, base+path, "identity", "")
		if res.StatusCode != http.StatusOK {
			t.Errorf("GET %s: %s", path, res.Status)
		}
		if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/html") {
			return
		}
		pages[path], ids[path] = body, map[string]bool{}
		for _, m := range id.FindAllStringSubmatch(body, -1) {
			ids[path][m[1]] = true
		}
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			if to := resolve(t, base, path, m[1]); to != nil && to.Path != "/" && to.Path != "/openapi.json" {
				open(to.Path)
			}
		}
	}
	open("/docs")
	for path, body := range pages {
		for _, m := range link.FindAllStringSubmatch(body, -1) {
			if to := resolve(t, base, path, m[1]); to != nil && to.Fragment != "" && !ids[to.Path][to.Fragment] {
				t.Errorf("%s links to %s, which has no such heading", path, m[1])
			}
		}
	}
	if len(pages) < 120 {
		t.Errorf("%d pages are linked", len(pages))
	}
}

// resolve returns the target of a link, or nil if it leads to another server.
func resolve(t *testing.T, base, path, link string) *url.URL {
	t.Helper()
	from, err := url.Parse(base + path)
	if err != nil {
		t.Fatal(err)
	}
	to, err := from.Parse(html.UnescapeString(link))
	if err != nil {
		t.Fatal(err)
	}
	if to.Host != from.Host {
		return nil
	}
	return to
}

func TestSearchFindsPages(t *testing.T) {
	t.Parallel()
	_, base := serve(t)
	for query, want := range map[string]string{
		"create inbox": `/docs/api/createInbox"`, "warm up": `/docs/guides/deliverability"`, "budget_exceeded": `/docs/guides/`, "MESSAGE.RECEIVED": `/docs/events/message.received"`,
		"zzzz": "No page has all these words", "<script>alert(1)</script>": `value="&lt;script&gt;`, "": "No page has all these words",
	} {
		_, body := get(t, base+"/docs/search?q="+url.QueryEscape(query), "identity", "")
		if !strings.Contains(body, want) {
			t.Errorf("a search for %q does not show %s", query, want)
		}
	}
	for query, want := range map[string]string{
		"webhook signature": "guides/webhooks", "rate limit": "guides/limits", "create inbox": "api/createInbox",
	} {
		_, body := get(t, base+"/docs/search?q="+url.QueryEscape(query), "identity", "")
		_, first, _ := strings.Cut(body, `<ul class="found"><li><a href="../docs/`)
		if at, _, _ := strings.Cut(first, `"`); at != want {
			t.Errorf("a search for %q shows %s first", query, at)
		}
		if first, _, _ = strings.Cut(first, "</li>"); !strings.Contains(first, "<mark>") {
			t.Errorf("a search for %q marks nothing: %s", query, first)
		}
	}
	if _, body := get(t, base+"/docs/search?q=%3Cbr", "identity", ""); strings.Contains(body, "<mark><") {
		t.Error("a line of a page is not escaped")
	}
}

// TestOperationsFoldWhatIsInside checks that a page shows the fields of a body at first, and
// folds those of the objects in it.
func TestOperationsFoldWhatIsInside(t *testing.T) {
	t.Parallel()
	_, base := serve(t)
	_, body := get(t, base+"/docs/api/sendMessage", "identity", "")
	before, inside, _ := strings.Cut(body, "<details><summary>Fields of nested objects</summary>")
	if !strings.Contains(before, "<code>to</code>") || strings.Contains(before, "<code>to.email</code>") || !strings.Contains(inside, "<code>to.email</code>") {
		t.Error("the fields of the objects in the body are not folded")
	}
	if _, text := get(t, base+"/docs/api/sendMessage.md", "identity", ""); !strings.Contains(text, "Fields of nested objects\n\n| Field") || strings.Contains(text, "X-Order") {
		t.Error("the Markdown lacks the fields of the objects, or has the largest example")
	}
}

// TestSiteIsComplete follows the links of the static site.
func TestSiteIsComplete(t *testing.T) {
	t.Parallel()
	files, err := docs.Site(gen.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(` (?:href|src)="([^"]*)"`)
	n := 0
	for name, body := range files {
		if !strings.HasSuffix(name, ".html") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(string(body), -1) {
			to := resolve(t, "http://site", "/"+strings.TrimSuffix(name, ".html"), m[1])
			if to == nil {
				continue
			}
			n++
			if at := to.Path[1:]; files[at] == nil && files[at+".html"] == nil {
				t.Errorf("%s links to %s, which is missing", name, m[1])
			}
		}
	}
	if n < 5000 {
		t.Errorf("%d links", n)
	}
	for _, want := range []string{"You write a program", "You test a product", "You build an agent", "You operate it", `href="docs/guides/quickstart"`} {
		if !strings.Contains(string(files["docs.html"]), want) {
			t.Errorf("the first page does not contain %s", want)
		}
	}
}
