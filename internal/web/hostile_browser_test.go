package web_test

import (
	"fmt"
	"html"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/mailhtml"
	"github.com/postroom/postroom/internal/mailhtml/hostilemail"
	"github.com/postroom/postroom/internal/web"
)

// trap is where everything in hostile mail points to.
type trap struct {
	url string

	mu    sync.Mutex
	conns int
	heard map[string]http.Header // by path, of the last request
}

// newTrap starts a server that responds to every request with an image.
func newTrap(t *testing.T) *trap { return startTrap(t, (*httptest.Server).Start) }

// newSecureTrap is a trap with TLS.
func newSecureTrap(t *testing.T) *trap { return startTrap(t, (*httptest.Server).StartTLS) }

func startTrap(t *testing.T, start func(*httptest.Server)) *trap {
	t.Helper()
	tr := &trap{heard: map[string]http.Header{}}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tr.mu.Lock()
		tr.heard[r.URL.Path] = r.Header.Clone()
		tr.mu.Unlock()
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		_, _ = w.Write(picture(30, 30))
	}))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			tr.mu.Lock()
			tr.conns++
			tr.mu.Unlock()
		}
	}
	start(srv)
	t.Cleanup(srv.Close)
	tr.url = srv.URL
	return tr
}

// caught returns how many connections there were, and what was asked for.
func (tr *trap) caught() (conns int, paths []string) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for p := range tr.heard {
		paths = append(paths, p)
	}
	slices.Sort(paths)
	return tr.conns, paths
}

// headers are those of the requests, by path.
func (tr *trap) headers() map[string]http.Header {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return maps.Clone(tr.heard)
}

// perThread is the number of messages in a thread: as many as a page shows.
const perThread = 10

// putHostile stores the messages in threads of the inbox and returns the threads.
func (s *site) putHostile(t *testing.T, in *gen.Inbox, messages []hostilemail.Message) []string {
	t.Helper()
	var threads []string
	for i, m := range messages {
		root := fmt.Sprintf("<root-%d@out.example>", i/perThread)
		head := "In-Reply-To: " + root + "\r\n"
		if i%perThread == 0 {
			head = "Message-ID: " + root + "\r\n"
			s.clock.Add(time.Minute) // the limit of calls starts again
		}
		got := s.put(t, in, head+htmlMail(m.Subject, m.From, m.Filename, m.HTML))
		if i%perThread == 0 {
			threads = append(threads, got.ThreadID)
		} else if got.ThreadID != threads[len(threads)-1] {
			t.Fatalf("mail %d is in thread %s, want %s", i, got.ThreadID, threads[len(threads)-1])
		}
	}
	return threads
}

// X1: hostile messages run no script, load nothing from elsewhere and do not
// navigate the page, on every page that shows messages. There are more than 250;
// make rounds shows all, make test a sample.
func TestBrowserHostileMail(t *testing.T) {
	s := openSQLite(t)
	tr := newTrap(t)
	messages := some(hostilemail.All(tr.url))
	in := s.newInbox(t, "victim", gen.SendPolicyOpen)
	threads := s.putHostile(t, in, messages)
	paths := []string{"/inboxes/" + in.ID, "/inboxes/" + in.ID + "?direction=in"}
	for _, id := range threads {
		paths = append(paths, "/inboxes/"+in.ID+"/threads/"+id)
	}
	frames := 0
	for some := range slices.Chunk(paths, 8) {
		frames += s.browse(t).readHostile(some)
	}
	if conns, paths := tr.caught(); conns != 0 {
		t.Errorf("%d connections from hostile mail: %v", conns, paths)
	}
	if frames != len(messages) {
		t.Errorf("%d messages were shown, want %d", frames, len(messages))
	}
	t.Logf("%d hostile messages in %d pages: 0 scripts, 0 connections", frames, len(paths))
}

// readHostile opens the messages on these pages and returns their number.
func (b *tab) readHostile(paths []string) int {
	b.t.Helper()
	b.watchDialogs()
	n := 0
	for _, path := range paths {
		b.site.clock.Add(time.Minute) // the limit of calls starts again
		b.do(chromedp.Navigate(b.site.url + path))
		n += b.showFrames()
		if at := b.where(); at != b.site.url+path {
			b.t.Errorf("the page went to %s", at)
		}
	}
	b.do(givingTime)
	return n
}

// givingTime waits in the browser: some of what hostile mail tries takes a moment.
var givingTime = chromedp.Evaluate[chromedp.Void](`new Promise((done) => setTimeout(done, 1500))`, chromedp.EvalAwaitPromise)

// some returns one in everyMail of the messages.
func some(all []hostilemail.Message) []hostilemail.Message {
	out := make([]hostilemail.Message, 0, len(all))
	step := everyMail
	for i, m := range all {
		if i%step == 0 {
			out = append(out, m)
		}
	}
	return out
}

// watchDialogs counts a dialog as something that went wrong: no script of ours
// opens one here.
func (b *tab) watchDialogs() {
	events := chromedp.Events(b.ctx, page.JavascriptDialogOpening)
	go func() {
		for ev, err := range events {
			if err != nil {
				return
			}
			b.complain("a script opened a dialog: " + ev.Message)
		}
	}()
}

// showFrames opens every mail of the page, waits until their documents are there,
// and returns how many there are.
func (b *tab) showFrames() int {
	b.t.Helper()
	n, err := chromedp.Run(b.ctx, chromedp.Evaluate[int](`(() => {
		for (const d of document.querySelectorAll('details')) d.open = true;
		const all = [...document.querySelectorAll('iframe')];
		for (const f of all) f.loading = 'eager';
		return all.length;
	})()`))
	must(b.t, err)
	b.waits(fmt.Sprintf("performance.getEntriesByType('resource').filter((e) => e.initiatorType === 'iframe').length >= %d", n))
	return n
}

// framing serves a page that shows each message in a frame with this sandbox and policy, unless
// they are empty, and returns its URL. body makes the document of a message.
func framing(t *testing.T, messages []hostilemail.Message, sandbox, policy string, body func(html string) string) string {
	t.Helper()
	if sandbox != "" {
		sandbox = " sandbox='" + sandbox + "'"
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		var i int
		if _, err := fmt.Sscanf(r.URL.Path, "/mail/%d", &i); err != nil {
			for i := range messages {
				_, _ = fmt.Fprintf(w, "<iframe%s src='/mail/%d'></iframe>", sandbox, i) // the client may be gone
			}
			return
		}
		if policy != "" {
			w.Header().Set("Content-Security-Policy", policy)
		}
		_, _ = io.WriteString(w, body(messages[i].HTML)) // as above
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// The messages are really hostile, and each protection is enough alone: without
// any, many messages reach the trap; with only the sanitizer, and neither sandbox
// nor policy, none does.
func TestBrowserEachProtectionIsEnough(t *testing.T) {
	s := openSQLite(t)
	for _, tt := range []struct {
		name      string
		clean     bool
		atLeast   int
		atMost    int
		onlyShort int
	}{{"as it came", false, 60 / everyMail, 1 << 20, 10_000}, {"made harmless", true, 0, 0, 1 << 20}} {
		tr := newTrap(t)
		messages := slices.DeleteFunc(some(hostilemail.All(tr.url)), func(m hostilemail.Message) bool { return len(m.HTML) > tt.onlyShort })
		url := framing(t, messages, "", "", func(body string) string {
			if !tt.clean {
				return body
			}
			c := mailhtml.Clean(body, mailhtml.Options{})
			return "<!doctype html><style>" + c.Style + "</style><body>" + c.Body
		})
		b := s.browseSignedOut(t)
		b.elsewhere = true
		b.expect("") // whatever: it is their page
		b.do(chromedp.Navigate(url), givingTime)
		conns, paths := tr.caught()
		if len(paths) < tt.atLeast || conns > tt.atMost {
			t.Errorf("%s: %d URLs were requested over %d connections: %v", tt.name, len(paths), conns, paths)
		}
		t.Logf("%s: %d URLs of %d messages were requested", tt.name, len(paths), len(messages))
	}
}

// X2: remote content is not loaded until the user asks. Then the browser loads
// only images, without cookie and referrer, and runs no script.
func TestBrowserRemoteContent(t *testing.T) {
	s := openSQLite(t)
	tr := newSecureTrap(t)
	in := s.newInbox(t, "reader", gen.SendPolicyOpen)
	u := tr.url
	m := s.put(t, in, htmlMail("News", "News", "a.pdf", `<link rel=prefetch href="`+u+`/prefetch"><link rel=stylesheet href="`+u+`/sheet">
			<style>@import '`+u+`/import';@font-face{font-family:x;src:url(`+u+`/font)}body{font-family:x;background:url(`+u+`/background)}</style>
			<img src="`+u+`/image"><img srcset="`+u+`/srcset 2x"><table background="`+u+`/table"><tr><td>x</table><video poster="`+u+`/poster"></video>
			<img src="cid:logo@out.example"><img src="`+strings.Replace(u, "https:", "http:", 1)+`/plain"><script src="`+u+`/script"></script>
			<iframe src="`+u+`/frame"></iframe><a href="`+u+`/link" ping="`+u+`/ping">x</a><img src="`+u+`/image?twice" onload="document.title='run'">`))
	other := s.put(t, in, htmlMail("Other", "Other", "a.pdf", `<img src="`+u+`/other">`))
	b := s.browse(t)
	b.open("/messages/" + m.ID)
	b.showFrames()
	b.shows("6 remote images blocked")
	if conns, paths := tr.caught(); conns != 0 {
		t.Fatalf("before it was asked for: %d connections, %v", conns, paths)
	}
	b.images = u
	b.click(".notice a")
	b.showFrames()
	b.shows("Remote images are shown.")
	b.shoot("images-shown")
	want := []string{"/background", "/image", "/plain", "/srcset", "/table"}
	if _, paths := tr.caught(); !slices.Equal(paths, want) {
		t.Errorf("asked for were %v, want %v", paths, want)
	}
	for path, h := range tr.headers() {
		if h.Get("Sec-Fetch-Dest") != "image" || h.Get("Cookie") != "" || h.Get("Referer") != "" || h.Get("Origin") != "" {
			t.Errorf("%s was asked for with %v", path, h)
		}
	}
	b.wantSignedImages(t, m, other)
}

// wantSignedImages checks who can use the URLs of the images shown.
func (b *tab) wantSignedImages(t *testing.T, m, other *gen.Message) {
	t.Helper()
	s := b.site
	v := s.visitAsUser(t)
	src := b.attribute("iframe", "src")
	doc := v.get(src).want(t, http.StatusOK)
	if csp := doc.header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; img-src 'self' data: https:; style-src 'unsafe-inline'; ") ||
		!strings.Contains(csp, "sandbox") || strings.Contains(csp, "allow-scripts") || strings.Contains(csp, "allow-same-origin") {
		t.Errorf("the document's policy: %s", csp)
	}
	_, ask, _ := strings.Cut(src, "?")
	got := v.get("/messages/"+other.ID+"/view?"+ask).want(t, http.StatusOK)
	if strings.Contains(got.body, "/other") || strings.Contains(got.header.Get("Content-Security-Policy"), "https:") {
		t.Error("a URL for the images of one message shows those of another")
	}
	var image string
	for part := range strings.SplitSeq(doc.body, `"`) {
		if strings.HasPrefix(part, "/mail-images/") {
			image = html.UnescapeString(part)
		}
	}
	signedOut := s.visit(t) // a document without an origin sends no cookies
	if got := signedOut.get(image).want(t, http.StatusOK); got.header.Get("Content-Type") != "image/png" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("an image: %v", got.header)
	}
	unsigned, _, _ := strings.Cut(image, "&k=")
	for _, wrong := range []string{strings.Replace(image, "att_", "att_0", 1), strings.Replace(image, "&e=", "&e=9", 1), image + "A", unsigned, "/mail-images/x/y?s=x&e=y&k=z"} {
		signedOut.get(wrong).want(t, http.StatusNotFound)
	}
	s.clock.Add(web.ImageTTL)
	signedOut.get(image).want(t, http.StatusNotFound)
	fresh := s.visitAsUser(t)
	for part := range strings.SplitSeq(fresh.get("/messages/"+m.ID+"/view").want(t, http.StatusOK).body, `"`) {
		if strings.HasPrefix(part, "/mail-images/") {
			image = html.UnescapeString(part)
		}
	}
	signedOut.get(image).want(t, http.StatusOK) // the mail's own
	fresh.post("/sign-out", nil).want(t, http.StatusSeeOther)
	signedOut.get(image).want(t, http.StatusNotFound)
}
