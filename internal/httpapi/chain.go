// Package httpapi is the HTTP layer around the operations of the API: request
// ids, body limits, authentication, rate limits, idempotency, error bodies and
// descriptions of invalid requests. Handlers return errors unchanged; only
// Classify knows status codes.
package httpapi

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/store"
)

// Rates are limits on calls per minute.
type Rates struct {
	Calls   int // of a key
	Sends   int // sending calls of a key
	Refused int // refused calls and file links of a client address
}

func (r Rates) withDefaults() Rates {
	return Rates{cmp.Or(r.Calls, DefaultRates.Calls), cmp.Or(r.Sends, DefaultRates.Sends), cmp.Or(r.Refused, DefaultRates.Refused)}
}

// Response is what is reported about a response.
type Response struct {
	// RequestID is as in X-Request-Id, Method that of the request, and Path without tokens.
	RequestID, Method, Path string
	// IP is the client's address. It is not valid for calls of Postroom itself.
	IP netip.Addr
	// Operation is the name of the operation, or empty if the request reached none.
	Operation string
	// AccountID and Caller, the id of a key or a user, are zero if the caller was not
	// identified.
	AccountID int64
	Caller    string
	Status    int
	Took      time.Duration // from the request to the response, with any wait
}

// Config configures a Chain.
type Config struct {
	Store *store.Store
	// TrustedProxies are the proxies whose X-Forwarded-For header is trusted.
	TrustedProxies []netip.Prefix
	// RateLimits says whether rate limits are enforced.
	RateLimits bool
	// Rates are the rate limits; zero fields have those of DefaultRates.
	Rates Rates
	// TempDir is the folder for large request bodies. Empty means the default
	// of the system.
	TempDir string
	// OAuth, if not nil, lets access tokens call the MCP endpoint.
	OAuth *OAuth
	// OnResponse, if not nil, is called for every response.
	OnResponse func(Response)
	// AccessLog logs every request, not only at the log level debug.
	AccessLog bool
	// Now is the clock.
	Now func() time.Time
	// Log records faults of the service.
	Log *slog.Logger
}

// OAuth describes access tokens.
type OAuth struct {
	// Resource is the URL of the MCP endpoint, which tokens are for.
	Resource string
	// Metadata is the URL that tells clients where to get one (RFC 9728).
	Metadata string
}

// Chain is the HTTP layer around the generated server. Its NewError is part of
// gen.Handler.
type Chain struct {
	cfg      Config
	rates    Rates
	store    *store.Store
	now      func() time.Time
	log      *slog.Logger
	server   *gen.Server
	running  sync.Map            // the calls with an idempotency key that run on this node
	bodies   *semaphore.Weighted // bytes of large bodies
	contents *semaphore.Weighted // responses with the content of messages
	shares   sync.Map            // of contents, semaphores by account
}

var _ gen.SecurityHandler = (*Chain)(nil)

// New returns a Chain.
func New(cfg Config) *Chain {
	return &Chain{
		cfg: cfg, rates: cfg.Rates.withDefaults(), store: cfg.Store, now: cfg.Now, log: cfg.Log,
		bodies: semaphore.NewWeighted(maxBodiesInMemory), contents: semaphore.NewWeighted(maxContents),
	}
}

// Server returns the generated server for the operations, which checks requests
// as the contract says. Wrap adds the rest.
func (c *Chain) Server(operations gen.Handler, raw gen.RawHandler) (_ *gen.Server, err error) {
	c.server, err = gen.NewServer(operations, raw, c,
		gen.WithErrorHandler(c.writeDecodeError),
		gen.WithNotFound(c.routeNotFound),
		gen.WithMethodNotAllowed(c.methodNotAllowed),
		gen.WithMiddleware(c.checkRequest, c.idempotent, c.limitContents))
	return c.server, err
}

// requestInfo holds the facts about a request that the outer handlers share.
type requestInfo struct {
	Response     // as far as it is known
	r            *http.Request
	w            http.ResponseWriter
	authenticate string // the header WWW-Authenticate of a 401
	rewritten    bool   // the request is served a second time
	free         func() // releases the memory of the response; may be nil
}

type infoKey struct{}

func infoOf(ctx context.Context) *requestInfo {
	if i, ok := ctx.Value(infoKey{}).(*requestInfo); ok {
		return i
	}
	return &requestInfo{}
}

// Request returns the request as the client sent it, with its body.
func Request(ctx context.Context) *http.Request { return infoOf(ctx).r }

// Special is how the calls with a context, within this process too, differ from others.
type Special struct {
	// CalledHost is the trusted name, with its port, by which a request came, for
	// development. Links begin with it.
	CalledHost string
	// WebhookFormat is the vendor in whose form new webhook endpoints get events.
	WebhookFormat *string
	// EachCodeOnce makes waits return each message only once to the same caller.
	EachCodeOnce bool
	// OnceWithin makes repeated calls without an idempotency key run only once in this
	// time, at most store.CachedResponseTTL, across all nodes. The same call by the same
	// caller gets the cached response. It is for callers that may repeat a call without
	// knowing.
	OnceWithin time.Duration
}

type specialKey struct{}

// SpecialOf returns how the calls with a context differ from others.
func SpecialOf(ctx context.Context) Special {
	s, _ := ctx.Value(specialKey{}).(Special)
	return s
}

// WithSpecial returns a context whose calls differ from others as set says, too.
func WithSpecial(ctx context.Context, set func(*Special)) context.Context {
	s := SpecialOf(ctx)
	set(&s)
	return context.WithValue(ctx, specialKey{}, s)
}

// RequestID returns the id of the request, as in the header X-Request-Id.
func RequestID(ctx context.Context) string { return infoOf(ctx).RequestID }

const requestIDHeader = "X-Request-Id"

// RequestIDs gives every response a request id, also pages, files and redirects. The
// handlers below it use the same id.
func RequestIDs(next http.Handler, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(requestIDHeader, store.NewID("req_", now()))
		next.ServeHTTP(w, r)
	})
}

// Wrap adds what the generated server lacks: request ids, panics, body limits,
// and the log.
func (c *Chain) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start, sw, limit := c.now(), &statusWriter{ResponseWriter: w}, int64(maxBody)
		info := &requestInfo{w: w, authenticate: "Bearer"}
		if r.URL.Path == mcpPath {
			limit = maxMCPBody
			if c.cfg.OAuth != nil { // RFC 9728 section 5.1
				info.authenticate = `Bearer resource_metadata="` + c.cfg.OAuth.Metadata + `"`
			}
		}
		id := cmp.Or(w.Header().Get(requestIDHeader), store.NewID("req_", start))
		w.Header().Set(requestIDHeader, id)
		info.Response = Response{RequestID: id, Method: r.Method, Path: loggedPath(r.URL.Path), IP: ClientIP(r, c.cfg.TrustedProxies)}
		ctx := context.WithValue(r.Context(), infoKey{}, info)
		body := &gatedBody{Reader: http.MaxBytesReader(w, r.Body, limit), w: w, chain: c, ctx: ctx, size: r.ContentLength}
		info.r = r.WithContext(ctx)
		info.r.Body = body
		defer func() {
			body.release()
			if info.free != nil {
				info.free()
			}
			info.Status, info.Took = sw.status, c.now().Sub(start)
			c.report(ctx, info.Response)
		}()
		defer c.recoverPanic(ctx, sw)

		setDeadlines(w, r)
		switch e := refuseEarly(r, limit); e {
		case nil:
			next.ServeHTTP(sw, headAsGet(info.r))
		case ErrNotFound:
			c.WriteError(ctx, sw, c.countByAddress(ctx, e))
		default:
			c.WriteError(ctx, sw, e)
		}
	})
}

// headAsGet turns a HEAD request into the GET with the same headers; net/http
// omits the body. Links in mail are not converted: they count only GET.
func headAsGet(r *http.Request) *http.Request {
	if r.Method == http.MethodHead && mailLink(r.URL.Path) == "" {
		r = r.WithContext(r.Context())
		r.Method = http.MethodGet
	}
	return r
}

const mcpPath = "/mcp"

// mailLink returns the start of the path of a link in mail, or "" for another path.
func mailLink(path string) string {
	for _, prefix := range []string{feedback.UnsubscribePath, feedback.OpenPath, feedback.ClickPath} {
		if strings.HasPrefix(path, prefix) {
			return prefix
		}
	}
	return ""
}

// report counts and logs a response, including that of a panic.
func (c *Chain) report(ctx context.Context, r Response) {
	if c.cfg.OnResponse != nil {
		c.cfg.OnResponse(r)
	}
	level := slog.LevelDebug
	if c.cfg.AccessLog {
		level = slog.LevelInfo
	}
	c.log.Log(ctx, level, "request", "method", r.Method, "path", r.Path, "operation", r.Operation,
		"status", r.Status, "duration_ms", r.Took.Milliseconds(), "remote_ip", r.IP, "request_id", r.RequestID)
}

// setDeadlines limits the time for the body and the response. Socket deadlines
// use the wall clock. A request without a body has no read deadline: net/http
// keeps reading the connection to detect a disconnect, and the deadline would
// end a long wait.
func setDeadlines(w http.ResponseWriter, r *http.Request) {
	now, rc := time.Now(), http.NewResponseController(w)
	if r.ContentLength != 0 {
		pieces := 1 + r.ContentLength/bodyPiece
		if r.ContentLength < 0 {
			pieces = maxBody / bodyPiece
		}
		_ = rc.SetReadDeadline(now.Add(min(time.Duration(pieces)*pieceTime, bodyTime))) // not all connections support deadlines, in tests
	}
	_ = rc.SetWriteDeadline(now.Add(responseTime)) // as above
}

// refuseEarly checks what the generated server does not: Content-Length, the
// text of the path, and the encoding of the body.
func refuseEarly(r *http.Request, limit int64) *Error {
	switch {
	case r.ContentLength > limit:
		return errTooLarge(limit)
	case !CleanText(r.URL.Path):
		return ErrNotFound
	case r.Header.Get("Content-Encoding") != "" && r.Header.Get("Content-Encoding") != "identity":
		return errEncoding
	}
	return nil
}

// loggedPath hides the token of a download link or a link in mail, which is a
// credential, in any spelling of the path.
func loggedPath(path string) string {
	const files = "files"
	if prefix := mailLink(path); prefix != "" {
		return prefix + "…"
	}
	if i := strings.Index(strings.ToLower(path), files); i >= 0 {
		return path[:i+len(files)] + "/…"
	}
	return path
}

// recoverPanic responds with 500 to a panic, unless the response has begun.
func (c *Chain) recoverPanic(ctx context.Context, w *statusWriter) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // a panic value, compared as net/http does
		panic(p)
	}
	c.log.ErrorContext(ctx, "panic", "panic", p, "stack", string(debug.Stack()), "request_id", RequestID(ctx))
	if w.status == 0 {
		c.WriteError(ctx, w, ErrInternal)
	}
}

// statusWriter records the status of the response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter. It ignores calls after the first.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *statusWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
