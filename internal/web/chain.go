package web

import (
	"net/http"
	"runtime/debug"
	"time"

	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

const (
	// maxForm is the largest form.
	maxForm = 4 << 20
	// formTimeout is how long a form may take to come in, and answerTimeout a page
	// to go out.
	formTimeout   = 30 * time.Second
	answerTimeout = time.Minute
)

// policy lets a page use what the dashboard itself serves, and nothing else; no
// script or style stands in a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// chain is what every page goes through: headers, limits, other sites, faults.
func (d *Dashboard) chain(f func(*page) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &page{d: d, w: w, r: r, requestID: store.NewID("req_", d.now())}
		secure(w.Header())
		w.Header().Set("X-Request-Id", p.requestID)
		rc := http.NewResponseController(w)
		_ = rc.SetReadDeadline(time.Now().Add(formTimeout))    // of the socket: by the wall clock; not all have one, in tests
		_ = rc.SetWriteDeadline(time.Now().Add(answerTimeout)) // as above
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
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

// secure sets the headers of every page.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// recovered answers for a page that panicked.
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

// client is who the request comes from, as rate limits count.
func (p *page) client() string {
	return httpapi.ClientNetwork(httpapi.ClientIP(p.r, p.d.cfg.TrustedProxies))
}
