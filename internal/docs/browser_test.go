package docs_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/skiptest"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// pageMost is how many bytes the page may load in all.
const pageMost = 600 << 10

const timeout = 60 * time.Second

// tab is a browser tab with its requests and console.
type tab struct {
	ctx context.Context

	mu       sync.Mutex
	console  []string
	requests []string
	bytes    float64
}

// startBrowser starts a browser, which all tabs of a test share.
func startBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		skiptest.OutsideCI(t, err.Error())
	}
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.WindowSize(1280, 900),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true))
	ctx, stop := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(func() {
		stop()
		stopAlloc()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// browse opens a tab, which shares nothing with the others of its browser.
func browse(browser context.Context, t *testing.T) *tab {
	t.Helper()
	ctx, closeTab := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	if err := chromedp.Do(ctx); err != nil { // opens the tab, which a context with an end would close
		t.Fatal(err)
	}
	timed, cancel := context.WithTimeout(ctx, timeout)
	b := &tab{ctx: timed}
	watching := b.watch(ctx)
	t.Cleanup(func() {
		cancel()
		closeTab()
		watching.Wait()
	})
	if _, err := chromedp.Call(timed, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	return b
}

// watch records the requests and the console messages of the tab.
func (b *tab) watch(ctx context.Context) *sync.WaitGroup {
	var running sync.WaitGroup
	console := chromedp.Console(ctx)
	running.Go(func() {
		for m, err := range console {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" || m.Type == "warning" {
				b.note(func() { b.console = append(b.console, fmt.Sprintf("%s %s", m.URL, m)) })
			}
		}
	})
	requests := chromedp.Events(ctx, network.RequestWillBeSent)
	running.Go(func() {
		for ev, err := range requests {
			if err != nil {
				return
			}
			b.note(func() { b.requests = append(b.requests, ev.Request.URL) })
		}
	})
	loads := chromedp.Events(ctx, network.LoadingFinished)
	running.Go(func() {
		for ev, err := range loads {
			if err != nil {
				return
			}
			b.note(func() { b.bytes += ev.EncodedDataLength })
		}
	})
	return &running
}

func (b *tab) note(what func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	what()
}

// do runs the steps of a user.
func (b *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		t.Fatalf("%v\nconsole: %v", err, b.console)
	}
}

func (b *tab) text(t *testing.T, css string) string {
	t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Text(chromedp.CSS(css)))
	if err != nil {
		t.Fatalf("the text of %s: %v", css, err)
	}
	return s
}

// TestBrowser opens the pages in tabs of one browser.
func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := startBrowser(t)
	t.Run("reference", func(t *testing.T) { tryTheReference(browser, t) })
	t.Run("documentation", func(t *testing.T) { readTheDocumentation(browser, t) })
}

// tryTheReference reads the reference, and tries out an operation with a key. The page
// sends requests to this server only.
func tryTheReference(browser context.Context, t *testing.T) {
	t.Helper()
	a, url := serve(t)
	b := browse(browser, t)
	click := func(css string) chromedp.Action[chromedp.Void] {
		return chromedp.Click(chromedp.CSS(css), chromedp.NodeVisible)
	}
	visible := func(css string) chromedp.Action[chromedp.Void] { return chromedp.WaitVisible(chromedp.CSS(css)) }

	b.do(t, chromedp.Navigate(url+"/docs/try"), visible(".opblock"))
	page := b.text(t, "main")
	for _, want := range []string{"Postroom", "/v1/inboxes", "/v1/emails/batch", "Mailboxes for programs."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not show %q", want)
		}
	}
	b.mu.Lock()
	if b.bytes > pageMost || b.bytes < 100<<10 {
		t.Errorf("the page weighs %.0f bytes, want %d or fewer", b.bytes, pageMost)
	}
	t.Logf("the page weighs %.0f bytes in %d requests", b.bytes, len(b.requests))
	b.mu.Unlock()

	b.do(t,
		click("button.authorize"), visible(".auth-container input"),
		chromedp.SendKeys(chromedp.CSS(".auth-container input"), "sk_live_right"),
		click(".auth-btn-wrapper button.authorize"), click(".auth-btn-wrapper button.btn-done"),
		click("#operations-Stats-getUsage .opblock-summary-control"), click("#operations-Stats-getUsage .try-out__btn"),
		click("#operations-Stats-getUsage .execute"), visible("#operations-Stats-getUsage .live-responses-table .response"))
	if got := b.text(t, "#operations-Stats-getUsage .live-responses-table"); !strings.Contains(got, "served by the API") {
		t.Errorf("the tried request shows %s", got)
	}
	if calls := a.called(); len(calls) != 1 || calls[0] != "GET /v1/usage Bearer sk_live_right" {
		t.Errorf("the API was called with %q", calls)
	}
	b.wantQuiet(t, url)
}

// wantQuiet checks that the page requested nothing from other servers and logged nothing.
func (b *tab) wantQuiet(t *testing.T, url string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		if !strings.HasPrefix(r, url+"/") && !strings.HasPrefix(r, "data:") {
			t.Errorf("the page requested %s", r)
		}
	}
	for _, c := range b.console {
		t.Errorf("on the console: %s", c)
	}
}

// readMost is how many bytes a page of the documentation may load in all.
const readMost = 150 << 10

// readTheDocumentation reads an operation in another language, and searches.
func readTheDocumentation(browser context.Context, t *testing.T) {
	t.Helper()
	_, url := serve(t)
	b := browse(browser, t)
	visible := func(css string) chromedp.Action[chromedp.Void] { return chromedp.WaitVisible(chromedp.CSS(css)) }
	b.do(t, chromedp.Navigate(url+"/docs/api/createInbox"), visible("article h1"))
	if text := b.text(t, "aside"); !strings.Contains(text, "curl -X POST") || strings.Contains(text, "await postroom") {
		t.Errorf("the examples are %q", text)
	}
	b.do(t, chromedp.Click(chromedp.CSS("label[for=language-1]"), chromedp.NodeVisible))
	if text := b.text(t, "aside"); strings.Contains(text, "curl -X POST") || !strings.Contains(text, "await postroom.post(\"/v1/inboxes\"") {
		t.Errorf("after a click the examples are %q", text)
	}
	b.do(t, chromedp.Navigate(url+"/docs/api/getInbox"), visible("article h1"))
	if text := b.text(t, "aside"); !strings.Contains(text, "await postroom.get") {
		t.Errorf("the language is forgotten: %q", text)
	}
	b.do(t, chromedp.SendKeys(chromedp.CSS("[type=search]"), "verification code\n"), visible(".found"))
	b.do(t, chromedp.Navigate(url+"/docs/guides/concepts"), visible("article table"))
	b.mu.Lock()
	if b.bytes > 4*readMost {
		t.Errorf("four pages weigh %.0f bytes, want %d or fewer", b.bytes, 4*readMost)
	}
	b.mu.Unlock()
	for _, width := range []int64{390, 1024} {
		b.do(t, chromedp.EmulateViewport(width, 844), chromedp.Navigate(url+"/docs/api/sendEmail"), visible("article h1"))
		over, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > document.documentElement.clientWidth`))
		if err != nil || over {
			t.Errorf("at %d px the page scrolls sideways: %v", width, err)
		}
	}
	b.wantQuiet(t, url)
}
