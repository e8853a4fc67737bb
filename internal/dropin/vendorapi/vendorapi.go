// Package vendorapi is what the APIs of other products in internal/dropin share: how they
// read keys and bodies, call the API of Postroom, and report errors.
//
// A vendor's API calls ours within the process, so the same checks, limits and events
// apply. It refuses what it cannot do: a field or parameter that it does not know is an
// error that names it.
package vendorapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
)

// Vendor is the API of another product.
type Vendor struct {
	// Name is the name in the setting. The paths of the API begin with it.
	Name string
	// Dev is set for an API that only `postroom dev` has, because its mail is captured.
	Dev bool
	// Operations returns the operations of the API by patterns of http.ServeMux, without the
	// prefix. Their requests have a caller for calls of api.
	Operations func(api API) map[string]Handler
	// Refuse returns an error in the vendor's form.
	Refuse func(e *httpapi.Error) (status int, body any)
	// Event, if not nil, converts the body of one of our events for webhook endpoints that
	// the vendor's API made. It returns the prefix of the names of the signature's header
	// fields, too.
	Event func(body []byte) (shaped []byte, prefix string, err error)
}

// API calls the API of Postroom within the process, as the caller of a request.
type API struct {
	// Handler is the API.
	Handler http.Handler
	// BaseURL is the public URL of the vendor's API, with its prefix.
	BaseURL string
	// Dev is set if mail is captured and none leaves.
	Dev bool
	// Version is the version of the program.
	Version string
	// Log receives our own faults.
	Log *slog.Logger
}

// Call calls an operation of the API and decodes its result into Out. The body, if not
// nil, is encoded as JSON. An error of the API is an *httpapi.Error.
func Call[Out any](r *http.Request, api API, method, path string, query url.Values, body any) (Out, error) {
	var out Out
	resp, err := api.Do(r, method, path, query, body)
	if err != nil {
		return out, err
	}
	return out, json.NewDecoder(resp.Body).Decode(&out)
}

// Get returns the resource of the API with a [Path] of these segments.
func Get[Out any](r *http.Request, api API, segments ...string) (*Out, error) {
	out, err := Call[Out](r, api, http.MethodGet, Path(r, segments...), nil, nil)
	return &out, err
}

// Show returns the handler that shows the resource with a [Path] of these segments.
func Show[Out any](api API, show func(*Out) Object, segments ...string) Handler {
	return func(_ http.ResponseWriter, r *http.Request) (any, error) {
		out, err := Get[Out](r, api, segments...)
		return show(out), err
	}
}

// Do is Call for a result of any kind. The idempotency key of the request is passed on.
func (a API) Do(r *http.Request, method, path string, query url.Values, body any) (*http.Response, error) {
	var sent io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(b)
	}
	inner, err := http.NewRequestWithContext(r.Context(), method, "http://localhost"+path+"?"+query.Encode(), sent)
	if err != nil {
		return nil, err
	}
	inner.Header.Set("Content-Type", "application/json")
	if key := r.Header.Get("Idempotency-Key"); key != "" && method == http.MethodPost {
		inner.Header.Set("Idempotency-Key", key)
	}
	resp, err := httpapi.Local{API: a.Handler}.RoundTrip(inner)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	var failed gen.Error
	if err := json.NewDecoder(resp.Body).Decode(&failed); err != nil {
		return nil, err
	}
	after, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0 without one
	return nil, &httpapi.Error{
		Status: resp.StatusCode, Code: failed.Error.Code, Message: failed.Error.Message, Param: failed.Error.Param.Or(""),
		Rule: failed.Error.Rule.Or(""), Details: failed.Error.Details, RetryAfter: after,
	}
}

// Key returns the API key of a request, or "": a Bearer token, the password or else the
// user name of Basic, or the token of Postmark.
func Key(r *http.Request) string {
	if user, password, ok := r.BasicAuth(); ok {
		return cmp.Or(password, user)
	}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimLeft(token, " ")
	}
	return r.Header.Get("X-Postmark-Server-Token")
}

// Decode reads the JSON body of a request into to, a pointer to a struct. A field that the
// struct does not have is an error that names it.
func Decode(r *http.Request, to any) error {
	d := json.NewDecoder(r.Body) // the HTTP layer limits it
	d.DisallowUnknownFields()
	err := d.Decode(to)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return unprocessable("", "the body is more than one JSON value")
		}
		return nil
	}
	if field, unknown := strings.CutPrefix(err.Error(), `json: unknown field "`); unknown {
		return Unsupported(strings.TrimSuffix(field, `"`))
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		field := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:] // before it may be the name of a Go type
		return unprocessable(field, cmp.Or(field, "the body")+" must not be a JSON "+wrong.Value)
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &httpapi.Error{Status: http.StatusRequestEntityTooLarge, Code: gen.ErrorCodePayloadTooLarge, Message: tooLarge.Error()}
	}
	return &httpapi.Error{Status: http.StatusBadRequest, Code: gen.ErrorCodeInvalidJson, Message: "the body is not valid JSON: " + err.Error()}
}

// Unsupported returns the error for a field or parameter that has no counterpart here.
func Unsupported(name string) error {
	return unprocessable(name, name+" is not supported by Postroom: leave it out")
}

// Query returns the parameters of a request, or an error if one is not among known.
func Query(r *http.Request, known ...string) (url.Values, error) {
	q := r.URL.Query()
	for name := range q {
		if !slices.Contains(known, name) {
			return nil, Unsupported(name)
		}
	}
	return q, nil
}

// Number returns a parameter that is a number from least to most, or fallback without one.
func Number(q url.Values, name string, fallback, least, most int) (int, error) {
	if q.Get(name) == "" {
		return fallback, nil
	}
	n, err := strconv.Atoi(q.Get(name))
	if err != nil || n < least || n > most {
		return 0, httpapi.Invalid(name, "must be a number from %d to %d", least, most)
	}
	return n, nil
}

// Path returns the path of a resource of the API. A segment in braces stands for that value
// of the path of the request.
func Path(r *http.Request, segments ...string) string {
	return "/v1/" + strings.Join(Mapped(segments, func(s string) string {
		if name, is := strings.CutPrefix(s, "{"); is {
			s = r.PathValue(strings.TrimSuffix(name, "}"))
		}
		return url.PathEscape(s)
	}), "/")
}

// Mapped converts each item of a list. The result is never nil, because JSON shows it.
func Mapped[A, B any](in []A, convert func(A) B) []B {
	out := make([]B, len(in))
	for i, item := range in {
		out[i] = convert(item)
	}
	return out
}

// Object is a JSON object. Created is one that is written with the status 201.
type (
	Object  = map[string]any
	Created map[string]any
)

// Text is a result that is written as plain text.
type Text string

func unprocessable(param, message string) error {
	return &httpapi.Error{Status: http.StatusUnprocessableEntity, Code: gen.ErrorCodeInvalidRequest, Param: param, Message: message}
}

// Renamed returns an error about a field of ours as one about a field of the vendor's.
func Renamed(err error, ours, theirs string) error {
	e, ok := errors.AsType[*httpapi.Error](err)
	if !ok || e.Param != ours {
		return err
	}
	renamed := *e
	renamed.Param, renamed.Message = theirs, theirs+strings.TrimPrefix(e.Message, ours)
	return &renamed
}

// NotFound returns the error for what is not there.
func NotFound(what string) error {
	return &httpapi.Error{Status: http.StatusNotFound, Code: gen.ErrorCodeNotFound, Message: what + " not found"}
}

// Handler serves an operation. Its result, unless it is nil, is written as JSON.
type Handler func(http.ResponseWriter, *http.Request) (any, error)

// WithBody returns the handler of an operation whose requests have a JSON body.
func WithBody[In any](serve func(*http.Request, *In) (any, error)) Handler {
	return func(_ http.ResponseWriter, r *http.Request) (any, error) {
		var in In
		if err := Decode(r, &in); err != nil {
			return nil, err
		}
		return serve(r, &in)
	}
}

// Handler returns a handler of operations by their patterns of http.ServeMux.
func (v Vendor) Handler(api API) http.Handler {
	mux := &http.ServeMux{}
	for pattern, serve := range v.Operations(api) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			out, err := serve(w, r)
			if err != nil {
				v.fail(w, r, api.Log, err)
				return
			}
			switch out := out.(type) {
			case nil: // it is written
			case Text:
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				_, _ = io.WriteString(w, string(out)) // the client may have gone
			case Created:
				writeJSON(w, http.StatusCreated, out)
			default:
				writeJSON(w, http.StatusOK, out)
			}
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		v.WriteError(w, &httpapi.Error{
			Status: http.StatusNotFound, Code: gen.ErrorCodeRouteNotFound,
			Message: "Postroom has no " + r.Method + " " + path.Clean(r.URL.Path) + " of this API",
		})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// An address that ends in a slash makes two of them, which the mux would redirect.
		r.URL.Path = "/" + strings.TrimLeft(r.URL.Path, "/")
		if r.URL.RawPath != "" {
			r.URL.RawPath = "/" + strings.TrimLeft(r.URL.RawPath, "/")
		}
		mux.ServeHTTP(w, r)
	})
}

// fail writes an error of an operation. One that is not for the caller is a fault of ours.
func (v Vendor) fail(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	e, known := errors.AsType[*httpapi.Error](err)
	if !known {
		log.ErrorContext(r.Context(), "request failed", "error", err, "request_id", httpapi.RequestID(r.Context()))
		e = httpapi.ErrInternal
	}
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	v.WriteError(w, e)
}

// WriteError writes an error in the vendor's form.
func (v Vendor) WriteError(w http.ResponseWriter, e *httpapi.Error) {
	status, body := v.Refuse(e)
	writeJSON(w, status, body)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have gone
}
