package handlers

import (
	"context"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

// requestInfo holds the facts about a request that the outer handlers share.
type requestInfo struct {
	id   string
	ip   netip.Addr
	r    *http.Request
	w    http.ResponseWriter
	kept *keptContents // of its body
}

type infoKey struct{}

func infoOf(ctx context.Context) *requestInfo {
	if i, ok := ctx.Value(infoKey{}).(*requestInfo); ok {
		return i
	}
	return &requestInfo{kept: &keptContents{}}
}

func requestID(ctx context.Context) string { return infoOf(ctx).id }

// outer wraps the generated server: request id, panics, body limits, log.
func (a *API) outer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := a.now()
		info := &requestInfo{id: store.NewID("req_", start), ip: httpapi.ClientIP(r, a.cfg.TrustedProxies), w: w}
		w.Header().Set("X-Request-Id", info.id)
		sw := &statusWriter{ResponseWriter: w}
		ctx := context.WithValue(r.Context(), infoKey{}, info)
		body := &gatedBody{
			ReadCloser: http.MaxBytesReader(w, r.Body, bodyLimit(r)), api: a, ctx: ctx, size: r.ContentLength, whole: isMCP(r),
			socket: http.NewResponseController(w), latest: time.Now().Add(bodyLongest),
		}
		defer a.releaseBody(ctx, body)
		r = r.WithContext(ctx)
		r.Body = body
		info.r, info.kept = r, &body.contents
		r = httpapi.NormalizeQuery(headAsGet(sw, r))
		defer a.answered(sw)
		defer a.recoverPanic(ctx, sw)

		setDeadlines(w, r)
		if e := refuseEarly(r); e != nil {
			if e.Status == http.StatusNotFound {
				e = a.countByAddress(ctx, e)
			}
			a.writeError(ctx, sw, e)
		} else {
			next.ServeHTTP(sw, r)
		}
		a.log.DebugContext(ctx, "request", "method", r.Method, "path", loggedPath(r.URL.Path), "status", sw.status,
			"duration_ms", a.now().Sub(start).Milliseconds(), "request_id", info.id)
	})
}

// headAsGet turns a HEAD request into the GET with the same headers; net/http
// omits the body. An event stream ends after its headers. Links in mail are not
// converted: they count only GET.
func headAsGet(w *statusWriter, r *http.Request) *http.Request {
	if r.Method != http.MethodHead || isMailLink(r.URL.Path) {
		return r
	}
	ctx, cancel := context.WithCancel(r.Context())
	w.wroteHeader = func() {
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			cancel()
		}
	}
	r = r.WithContext(ctx)
	r.Method = http.MethodGet
	return r
}

// isMailLink reports whether the path is that of a link in mail.
func isMailLink(path string) bool {
	return strings.HasPrefix(path, feedback.UnsubscribePath) || strings.HasPrefix(path, feedback.OpenPath) ||
		strings.HasPrefix(path, feedback.ClickPath)
}

// answered reports the response status, including that of a panic.
func (a *API) answered(w *statusWriter) {
	if a.cfg.Answered != nil {
		a.cfg.Answered(w.status)
	}
}

// setDeadlines limits the time for the body and the response. Socket deadlines
// use the wall clock. A request without a body has no read deadline: net/http
// keeps reading the connection to detect a disconnect, and the deadline would
// end a long wait.
func setDeadlines(w http.ResponseWriter, r *http.Request) {
	now, rc := time.Now(), http.NewResponseController(w)
	if r.ContentLength != 0 {
		_ = rc.SetReadDeadline(now.Add(bodyTimeout)) // not all connections support deadlines, in tests
	}
	_ = rc.SetWriteDeadline(now.Add(responseTimeout)) // as above
}

// refuseEarly checks what the generated server does not: Content-Length, the
// text of the path, and the encoding of the body.
func refuseEarly(r *http.Request) *httpapi.Error {
	switch {
	case r.ContentLength > bodyLimit(r):
		return errTooLarge(bodyLimit(r))
	case !httpapi.CleanText(r.URL.Path):
		return httpapi.ErrNotFound
	case r.Header.Get("Content-Encoding") != "" && r.Header.Get("Content-Encoding") != "identity":
		return errEncoding
	}
	return nil
}

// loggedPath hides the token of a download link or a link in mail, which is a
// credential, in any spelling of the path.
func loggedPath(path string) string {
	const files = "files"
	for _, prefix := range []string{feedback.UnsubscribePath, feedback.OpenPath, feedback.ClickPath} {
		if strings.HasPrefix(path, prefix) {
			return prefix + "…"
		}
	}
	if i := strings.Index(strings.ToLower(path), files); i >= 0 {
		return path[:i+len(files)] + "/…"
	}
	return path
}

// recoverPanic responds with 500 to a panic, unless the response has begun.
func (a *API) recoverPanic(ctx context.Context, w *statusWriter) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
		panic(p)
	}
	a.log.ErrorContext(ctx, "panic", "panic", p, "stack", string(debug.Stack()), "request_id", requestID(ctx))
	if w.status == 0 {
		a.writeError(ctx, w, httpapi.ErrInternal)
	}
}

// statusWriter records the status of the response.
type statusWriter struct {
	http.ResponseWriter
	status      int
	wroteHeader func() // may be nil
}

// WriteHeader implements http.ResponseWriter. It ignores calls after the first.
func (w *statusWriter) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	w.ResponseWriter.WriteHeader(status)
	if w.wroteHeader != nil {
		w.wroteHeader()
	}
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
