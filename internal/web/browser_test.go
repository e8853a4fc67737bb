package web_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/skiptest"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", os.Getenv("POSTROOM_SCREENSHOTS"), "folder that pictures of the pages are written into")

// pageMost is how much a page may weigh, with all that it loads the first time.
const pageMost = 200 << 10

// patience is how long a test waits for what should take a moment.
const patience = 30 * time.Second

// browser is one for all tests: it takes longer to start than most of them.
type browser struct {
	once sync.Once
	ctx  context.Context
	err  error
	stop func()
}

var chromium browser

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if chromium.stop != nil {
		chromium.stop()
	}
	os.Exit(code)
}

// start starts the browser. It discards the browser's own errors.
func (b *browser) start() {
	var path string
	if path, b.err = exec.LookPath("chromium"); b.err != nil {
		return
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-features", "Translate,IsolateSandboxedIframes"), // otherwise every frame of a message starts a process
		chromedp.Flag("ignore-certificate-errors", true),                       // of the tests' own servers
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true))
	ctx, stop := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {}))
	b.ctx, b.err = ctx, chromedp.Do(ctx)
	b.stop = func() {
		stop()
		stopAlloc()
	}
}

// tab is a tab of the browser with cookies of its own.
type tab struct {
	t    *testing.T
	site *site
	ctx  context.Context
	// limit ends ctx, unless another step begins in time.
	limit *time.Timer

	mu       sync.Mutex
	console  []string // what went wrong, as the browser says
	requests []string // of the tab: every address that was asked for
	bytes    float64  // that came over the network
	expected []string

	elsewhere bool   // not our page: it may request anything
	images    string // the origin from which remote images may be loaded
}

// browse opens a tab in which the site's user is signed in. Console errors and
// requests to other hosts fail the test.
func (s *site) browse(t *testing.T) *tab {
	t.Helper()
	b := s.browseSignedOut(t)
	_, err := chromedp.Call(b.ctx, network.SetCookie, network.SetCookieParams{
		Name: "postroom_session", Value: s.session, URL: s.url, HTTPOnly: new(true), SameSite: network.CookieSameSiteLax,
	})
	must(t, err)
	return b
}

// browseSignedOut opens a tab without a signed-in user.
func (s *site) browseSignedOut(t *testing.T) *tab {
	t.Helper()
	chromium.once.Do(chromium.start)
	switch {
	case errors.Is(chromium.err, exec.ErrNotFound):
		skiptest.OutsideCI(t, "chromium is not installed")
	case chromium.err != nil:
		t.Fatalf("start chromium: %v", chromium.err)
	}
	ctx, closeTab := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
	timed, cancel := context.WithCancel(ctx)
	b := &tab{t: t, site: s, ctx: timed, limit: time.AfterFunc(2*patience, cancel)}
	must(t, chromedp.Do(ctx)) // opens the tab, which a context with an end would close
	watching := b.watch(ctx)
	t.Cleanup(func() {
		_, _ = chromedp.Run(timed, chromedp.Evaluate[int]("0")) // earlier messages have arrived by then
		closeTab()
		cancel()
		watching.Wait()
		for _, c := range b.console {
			t.Errorf("on the console: %s", c)
		}
		for _, url := range b.asked() {
			if b.images != "" && strings.HasPrefix(url, b.images+"/") {
				continue
			}
			if !b.elsewhere && !strings.HasPrefix(url, s.url+"/") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "about:") {
				t.Errorf("the page requested another origin: %s", url)
			}
		}
	})
	_, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{})
	must(t, err)
	b.do(b.colours("light"), chromedp.EmulateViewport(1280, 900))
	return b
}

// watch notes what the tab asks for and complains about.
func (b *tab) watch(ctx context.Context) *sync.WaitGroup {
	var running sync.WaitGroup
	console := chromedp.Console(ctx)
	running.Go(func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || m.Type == "warning" {
				b.complain(fmt.Sprintf("%s %s", m.URL, m))
			}
		}
	})
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	running.Go(func() {
		for ev, err := range requests {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.requests = append(b.requests, ev.Request.URL)
			b.mu.Unlock()
		}
	})
	loads := chromedp.Events(ctx, network.LoadingFinished)
	running.Go(func() {
		for ev, err := range loads {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.bytes += ev.EncodedDataLength
			b.mu.Unlock()
		}
	})
	return &running
}

func (b *tab) complain(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.expected {
		if strings.Contains(what, e) {
			return
		}
	}
	b.console = append(b.console, what)
}

// expect allows console errors with this text: browsers log every 4xx response
// there.
func (b *tab) expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, text)
}

// asked returns every address that the tab has asked for.
func (b *tab) asked() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.requests...)
}

// do runs what a person does.
func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	b.limit.Reset(2 * patience)
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%v\nat %s\nconsole: %v", err, b.where(), b.console)
	}
}

// open loads a page, which must return 200 and stay small.
func (b *tab) open(path string) {
	b.t.Helper()
	b.mu.Lock()
	b.bytes = 0
	b.mu.Unlock()
	b.loads(http.StatusOK, chromedp.Navigate(b.site.url+path))
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.bytes > pageMost {
		b.t.Errorf("%s weighs %.0f bytes, want %d or fewer", path, b.bytes, pageMost)
	}
}

// faults are what keeps people out who do not see a page, or use no mouse.
const faults = `(() => {
  const all = (css) => [...document.querySelectorAll(css)], faults = [];
  if (all('h1').length !== 1) faults.push(all('h1').length + ' headings of the page');
  if (!document.title || document.documentElement.lang !== 'en') faults.push('no title or language');
  const ids = all('[id]').map((e) => e.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push('two of id ' + id);
  for (const e of all('input:not([type=hidden]), select, textarea'))
    if (![...e.labels].some((l) => l.textContent.trim()) && !e.ariaLabel) faults.push('no label: ' + e.outerHTML);
  for (const e of all('button, a, summary'))
    if (!e.textContent.trim() && !e.ariaLabel && !e.querySelector('img[alt]:not([alt=""])')) faults.push('no name: ' + e.outerHTML);
  for (const e of all('img:not([alt])')) faults.push('no alt: ' + e.outerHTML);
  for (const e of all('[aria-describedby]'))
    for (const id of e.getAttribute('aria-describedby').split(' '))
      if (!document.getElementById(id)) faults.push('describedby ' + id + ', which there is not');
  return faults;
})()`

// sound fails the test if the page is not accessible.
func (b *tab) sound() {
	b.t.Helper()
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[[]string](faults))
	must(b.t, err)
	for _, f := range found {
		b.t.Errorf("%s: %s", b.where(), f)
	}
}

// loads runs steps that load another page, which must return this status.
func (b *tab) loads(status int64, steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	b.limit.Reset(2 * patience)
	res, err := chromedp.RunResponse(b.ctx, steps...)
	if err != nil {
		b.t.Fatalf("%v\nat %s\nconsole: %v", err, b.where(), b.console)
	}
	b.sound()
	if res.Status != status {
		b.t.Fatalf("%s: status %d, want %d:\n%s", res.URL, res.Status, status, b.text("main"))
	}
}

// click clicks on what leads to another page.
func (b *tab) click(css string) {
	b.t.Helper()
	b.loads(http.StatusOK, chromedp.Click(chromedp.CSS(css), chromedp.NodeVisible))
}

// fill writes into a field, in the place of what it held.
func (b *tab) fill(css, text string) {
	b.t.Helper()
	b.do(chromedp.Clear(chromedp.CSS(css)), chromedp.SendKeys(chromedp.CSS(css), text))
}

// text is what a person reads in an element.
func (b *tab) text(css string) string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS(css)))
	if err != nil {
		b.t.Fatalf("the text of %s: %v", css, err)
	}
	return s
}

// shows fails unless the page can be read to hold all of these.
func (b *tab) shows(texts ...string) {
	b.t.Helper()
	got := b.text("main")
	for _, text := range texts {
		if !strings.Contains(got, text) {
			b.t.Errorf("%s does not show %q:\n%s", b.where(), text, got)
		}
	}
}

// eval returns what an expression is in the page.
func (b *tab) eval(expression string) string {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](expression))
	must(b.t, err)
	return got
}

// copies presses a button that copies, and compares what the page put onto the
// clipboard.
func (b *tab) copies(css, want string) {
	b.t.Helper()
	b.do(chromedp.Evaluate[chromedp.Void](`navigator.clipboard.writeText = async (text) => { window.copied = text }`),
		chromedp.Click(chromedp.CSS(css), chromedp.NodeVisible))
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("window.copied"))
	if err != nil || got != want {
		b.t.Errorf("%s copies %q (%v), want %q", css, got, err, want)
	}
}

// where is the address of the page.
func (b *tab) where() string {
	at, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		return err.Error()
	}
	return at
}

// shoot checks the page with axe-core, and that it fits a phone. It takes
// screenshots, if enabled: light, dark, and on smaller screens.
func (b *tab) shoot(name string) {
	b.t.Helper()
	b.audit("light", "")
	b.fits()
	b.do(b.colours("dark"))
	b.audit("dark", "color-contrast") // the colours are all that differs
	b.do(chromedp.EmulateViewport(390, 844))
	b.audit("dark on a phone", "color-contrast") // there the background is plain, and axe-core knows its colour
	b.do(b.colours("light"), chromedp.EmulateViewport(1280, 900))
	if *screenshots == "" {
		return
	}
	for _, as := range []struct {
		kind, scheme  string
		width, height int64
	}{{"light", "light", 1440, 900}, {"dark", "dark", 1440, 900}, {"tablet", "light", 1024, 768}, {"phone", "light", 390, 844}, {"phone-dark", "dark", 390, 844}} {
		b.do(b.colours(as.scheme), chromedp.EmulateViewport(as.width, as.height))
		b.picture(name + "-" + as.kind)
	}
	b.do(b.colours("light"), chromedp.EmulateViewport(1280, 900))
}

// picture takes a screenshot of the current page, if enabled.
func (b *tab) picture(name string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	must(b.t, err)
	if _, err := png.DecodeConfig(bytes.NewReader(shot)); err != nil {
		b.t.Fatal(err)
	}
	must(b.t, os.MkdirAll(*screenshots, 0o750))
	must(b.t, os.WriteFile(filepath.Join(*screenshots, name+".png"), shot, 0o600))
}

// fits checks the page on a phone: axe-core finds nothing, and it is not too wide.
func (b *tab) fits() {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(390, 844))
	width, err := chromedp.Run(b.ctx, chromedp.Evaluate[int]("document.documentElement.scrollWidth"))
	must(b.t, err)
	if width > 390 {
		b.t.Errorf("%s is %d pixels wide on a phone of 390", b.where(), width)
	}
	b.audit("phone", "")
	b.do(chromedp.EmulateViewport(1280, 900))
}

func (b *tab) colours(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		})
		return err
	})
}
