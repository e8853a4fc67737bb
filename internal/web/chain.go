package web

import (
	"net/http"
	"runtime/debug"
	"time"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/netguard"
	"github.com/postroom/postroom/store"
)

const (
	// maxForm is the maximum size of a form in bytes, maxUpload that of a signed-in user's,
	// which may attach files.
	maxForm, maxUpload = 64 << 10, 16 << 20
	// formTimeout bounds reading a form, responseTimeout writing a page.
	formTimeout     = 30 * time.Second
	responseTimeout = time.Minute
)

// policy allows only what the dashboard itself serves. Inline scripts and styles
// are blocked.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// chain wraps a page with headers, limits, the cross-site check and error
// handling.
func (d *Dashboard) chain(f func(*page) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &page{d: d, w: w, r: r, requestID: w.Header().Get("X-Request-Id")}
		if p.requestID == "" {
			p.requestID = store.NewID("req_", d.now())
		}
		secure(w.Header())
		w.Header().Set("X-Request-Id", p.requestID)
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(formTimeout))      // socket deadline, so wall clock; test writers do not support it
		_ = rc.SetWriteDeadline(time.Now().Add(responseTimeout)) // as above
		defer p.recovered()
		if err := d.crossSite.Check(r); err != nil {
			p.fail(errForeignForm)
			return
		}
		if err := f(p); err != nil {
			p.fail(err)
		}
	})
}

// secure sets the security headers of every page.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// recovered writes the error page after a panic.
func (p *page) recovered() {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
		panic(v)
	}
	p.d.log.ErrorContext(p.ctx(), "panic", "panic", v, "stack", string(debug.Stack()), "request_id", p.requestID)
	p.fail(errFailed)
}

// client returns the client's network, as rate limits count it.
func (p *page) client() string {
	return netguard.ClientNetwork(httpapi.ClientIP(p.r, p.d.cfg.TrustedProxies)).String()
}
