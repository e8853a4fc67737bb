// Package handlers implements the HTTP API: the server generated from
// openapi.yaml, on top of the store. It has one file per resource: request in,
// store call, response out. internal/httpapi has the HTTP layer around them. The
// generated server checks what the contract can express before it calls a
// handler.
package handlers

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"golang.org/x/sync/semaphore"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/domains"
	"github.com/postroom/postroom/internal/feedback"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/stream"
	"github.com/postroom/postroom/store"
)

// Config configures the API.
type Config struct {
	httpapi.Config
	// MCP creates the server behind POST /mcp. Each request it receives has a
	// caller, and its requests to local run as that caller. Nil disables the
	// endpoint.
	MCP func(local http.RoundTripper) (http.Handler, error)
	// Incoming stores simulated messages, and knows which inbox an address reaches.
	Incoming Incoming
	// Domains manages the accounts' own domains.
	Domains *domains.Domains
	// WebhookTargets checks webhook URLs.
	WebhookTargets WebhookTargets
	// WebhookTester sends test events to webhook endpoints.
	WebhookTester WebhookTester
	// Streams delivers events to the open event streams.
	Streams *stream.Hub
	// StreamPing is the silence after which a stream sends a comment; 0 means
	// 20 seconds.
	StreamPing time.Duration
	// MailDomain is the mail domain of the installation, in lower case.
	MailDomain string
	// AnySender lets every account send from any address that is not an inbox of
	// another. It is for development.
	AnySender bool
	// FindInbox, if not nil, returns the ID of the inbox that mail to an address reaches,
	// and creates one if there is none; "" for an invalid address. It is for development.
	FindInbox func(ctx context.Context, address string) (string, error)
	// LinkScan, if not nil, returns what the visits to the links of a message found. It is
	// for development.
	LinkScan func(messageID string) []gen.ScannedLink
	// Hostname is the host name in the Authentication-Results of received mail.
	Hostname string
	// BaseURL is the public URL of the API. Links begin with it.
	BaseURL *url.URL
	// FileKey signs download links.
	FileKey []byte
	// Feedback creates and reads the links in sent mail. Nil means no links.
	Feedback *feedback.Signer
	// TrackOpens and TrackClicks add a tracking pixel and tracking links to the
	// HTML of emails with one recipient.
	TrackOpens, TrackClicks bool
	// NoFiles turns off download links, except those of the blob storage.
	NoFiles bool
	// KeyPrefix is the first part of new keys: "sk".
	KeyPrefix string
	// SendPolicy is the default policy of a new inbox.
	SendPolicy store.SendPolicy
	// MaxRetentionDays is the longest retention of an inbox; 0 means 30 days.
	MaxRetentionDays int
	// Undo is how long the approval of a person can be undone. The message waits for that
	// time. 0 sends it at once.
	Undo time.Duration
	// Version is the version of the program.
	Version string
	// Stopping is closed when the service shuts down. Waits then end at once,
	// with 503 unless they find a match.
	Stopping <-chan struct{}
}

// API implements the generated interfaces.
type API struct {
	*httpapi.Chain
	cfg      Config
	store    *store.Store
	now      func() time.Time
	log      *slog.Logger
	files    fileSigner
	batches  *semaphore.Weighted // for emails: large batches
	mcp      http.Handler        // may be nil
	contract http.Handler        // serves the contract

	firstAccount atomic.Int64 // its sequence number; 0 until first needed
}

var (
	_ gen.Handler    = (*API)(nil)
	_ gen.RawHandler = (*API)(nil)
)

// Service is the API.
type Service struct {
	http.Handler
	api *API
}

// New returns the API.
func New(cfg Config) (*Service, error) {
	contract, err := contractOf(cfg.BaseURL)
	if err != nil {
		return nil, err
	}
	a := &API{
		Chain: httpapi.New(cfg.Config), cfg: cfg, store: cfg.Store, now: cfg.Now, log: cfg.Log,
		files: fileSigner{cfg.FileKey}, batches: semaphore.NewWeighted(largeBatches), contract: gzhttp.GzipHandler(serveJSON(contract)),
	}
	s, err := a.Server(a, a)
	if err != nil {
		return nil, err
	}
	api := a.Wrap(a.links(s))
	if cfg.MCP != nil {
		if a.mcp, err = cfg.MCP(httpapi.Local{API: api}); err != nil {
			return nil, err
		}
	}
	return &Service{Handler: api, api: a}, nil
}

// Front is httpapi.Chain.Front.
func (s *Service) Front(key func(*http.Request) string, refuse func(http.ResponseWriter, *httpapi.Error), next http.Handler) http.Handler {
	return s.api.Chain.Front(key, refuse, next)
}

// pageSize is the default page size.
const pageSize = 20

func pageOf(limit gen.OptInt, cursor gen.OptString) store.Page {
	return store.Page{Limit: limit.Or(pageSize), Cursor: cursor.Or("")}
}

// serveJSON serves a JSON document.
func serveJSON(body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the client may have gone
	}
}

// list is the form of all lists in the contract.
type list[T any] interface {
	~struct {
		Data    []T           `json:"data"`
		HasMore bool          `json:"has_more"`
		Cursor  gen.NilString `json:"cursor"`
	}
}

// listToAPI converts a page of rows, unless err is not nil.
func listToAPI[L list[T], T, Row any](l store.List[Row], err error, toAPI func(Row) *T) (*L, error) {
	if err != nil {
		return nil, err
	}
	data := mapped(l.Rows, func(row Row) T { return *toAPI(row) })
	return &L{Data: data, HasMore: l.Cursor != "", Cursor: emptyIsNull(l.Cursor)}, nil
}

// mapped converts each item of a list. The result is never nil, because JSON shows it.
func mapped[A, B any](in []A, convert func(A) B) []B {
	out := make([]B, len(in))
	for i, item := range in {
		out[i] = convert(item)
	}
	return out
}

// result converts a row, unless err is not nil.
func result[T, Row any](row Row, err error, toAPI func(Row) *T) (*T, error) {
	if err != nil {
		return nil, err
	}
	return toAPI(row), nil
}

// once is httpapi.Once for the result of a row.
func once[T, Row any](ctx context.Context, status int, kind string, toAPI func(Row) *T) *store.Once {
	return httpapi.Once(ctx, status, kind, func(row Row) (any, error) { return toAPI(row), nil })
}

func nilString(s *string) gen.NilString {
	if s == nil {
		return gen.NilString{Null: true}
	}
	return gen.NewNilString(*s)
}

// emptyIsNull converts "", which the store uses for no text, to null.
func emptyIsNull(s string) gen.NilString {
	if s == "" {
		return gen.NilString{Null: true}
	}
	return gen.NewNilString(s)
}

func nilTime(t *store.Time) gen.NilDateTime {
	if t == nil {
		return gen.NilDateTime{Null: true}
	}
	return gen.NewNilDateTime(t.Time)
}

// optional is the interface that the generated OptX types share.
type optional[T any] interface {
	Get() (T, bool)
}

// patch sets dst if the field is present.
func patch[T any](dst *T, field optional[T]) {
	if v, ok := field.Get(); ok {
		*dst = v
	}
}

// futureTime returns an error for a time that is not in the future.
func (a *API) futureTime(field string, t time.Time) (*store.Time, error) {
	if !t.After(a.now()) {
		return nil, httpapi.Invalid(field, "must be in the future")
	}
	st := store.NewTime(t)
	return &st, nil
}

// optionalFuture reads the field expires_at. Absent or null means never.
func (a *API) optionalFuture(field optional[time.Time]) (at *store.Time, err error) {
	if t, ok := field.Get(); ok {
		at, err = a.futureTime("expires_at", t)
	}
	return at, err
}

// await calls look immediately, at each wake-up, and whenever poll has passed, until look
// finds what the caller waits for or the time is over. The last call has last set.
func (a *API) await(ctx context.Context, wake <-chan struct{}, poll time.Duration, ends time.Time, look func(last bool) (bool, error)) error {
	var end error
	for last := !time.Now().Before(ends); ; {
		found, err := look(last)
		if found || err != nil {
			return err
		}
		if last {
			return end
		}
		left := time.Until(ends)
		select {
		case <-wake:
		case <-time.After(min(left, poll)):
			last = left <= poll
		case <-a.cfg.Stopping:
			last, end = true, httpapi.ErrStopping
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fieldPath returns the path of a field of a list item, such as
// attachments[2].content.
func fieldPath(list string, i int, field string) string {
	return list + "[" + strconv.Itoa(i) + "]." + field
}

// sortHeaders sorts header fields from a map, so that their order is stable.
func sortHeaders(h [][2]string) {
	slices.SortFunc(h, func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
}

// into returns what stores a value that was read in dst, and passes its error on. Readers
// of several fields return cmp.Or of their errors: the first one.
func into[T any](dst *T) func(T, error) error {
	return func(v T, err error) error {
		*dst = v
		return err
	}
}
