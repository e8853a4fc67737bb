package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ogen-go/ogen/ogenerrors"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/store"
)

// apiError is an error that the caller may see.
type apiError struct {
	status     int
	code       string
	message    string
	param      string
	details    []gen.ErrorDetail
	retryAfter int // whole seconds; 0: no header
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

// errInvalid returns a 400 error about param for a rule that the contract
// cannot express.
func errInvalid(param, format string, args ...any) error {
	return &apiError{status: http.StatusBadRequest, code: gen.ErrorCodeInvalidRequest, param: param, message: param + " " + fmt.Sprintf(format, args...)}
}

// errForbidden returns a 403 error for what the current state or a policy
// forbids.
func errForbidden(code, message string) error {
	return &apiError{status: http.StatusForbidden, code: code, message: message}
}

var (
	errContentRequired = &apiError{status: http.StatusBadRequest, code: gen.ErrorCodeContentRequired, param: "text", message: "give text, html or both"}
	errUnauthorized    = &apiError{status: http.StatusUnauthorized, code: gen.ErrorCodeUnauthorized, message: "missing or invalid API key"}
	errNotFound        = &apiError{status: http.StatusNotFound, code: gen.ErrorCodeNotFound, message: "not found"}
	errNoInbox         = &apiError{status: http.StatusNotFound, code: gen.ErrorCodeNotFound, param: "inbox_id", message: "inbox_id: inbox not found, or this key has no access to it"}
	errExpired         = &apiError{status: http.StatusGone, code: gen.ErrorCodeMessageExpired, message: "the content of this message has been deleted"}
	errLinkInvalid     = &apiError{status: http.StatusForbidden, code: gen.ErrorCodeLinkInvalid, message: "this link is invalid or has expired"}
	errNoFiles         = &apiError{status: http.StatusNotFound, code: gen.ErrorCodeNotFound, message: "download links are not available on this installation"}
	errDraftNotPending = &apiError{status: http.StatusConflict, code: gen.ErrorCodeDraftNotPending, message: "this draft has already been approved or rejected"}
	errTestMode        = &apiError{status: http.StatusConflict, code: gen.ErrorCodeTestModeMismatch, message: "a test key cannot change or decide a live draft: use a live key"}
	errDraftChanged    = &apiError{status: http.StatusConflict, code: gen.ErrorCodeDraftChanged, message: "this draft has changed since you read it: read it again"}
	errNotCancellable  = &apiError{status: http.StatusConflict, code: gen.ErrorCodeNotCancellable, message: "this email is no longer scheduled"}
	errWebhookDisabled = &apiError{status: http.StatusConflict, code: gen.ErrorCodeWebhookDisabled, message: "this webhook endpoint is disabled"}
	errInternal        = &apiError{status: http.StatusInternalServerError, code: gen.ErrorCodeInternalError, message: "internal error"}
	errUnavailable     = &apiError{status: http.StatusServiceUnavailable, code: gen.ErrorCodeUnavailable, message: "the service is temporarily unavailable: try again", retryAfter: 1}
)

// classify converts any error to the one that the caller sees. It is the only
// place that knows status codes. Unknown errors are faults of the service: 500.
func (a *API) classify(ctx context.Context, err error) *apiError {
	var known *apiError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooLarge):
		return errTooLarge(tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errTooSlow
	case errors.Is(err, store.ErrNotFound):
		return errNotFound
	case errors.Is(err, store.ErrCursor):
		return &apiError{
			status: http.StatusBadRequest, code: gen.ErrorCodeInvalidRequest, param: "cursor",
			message: "cursor must come from a previous page of this list, with the same filters",
		}
	case errors.Is(err, store.ErrAddressTaken):
		return &apiError{status: http.StatusConflict, code: gen.ErrorCodeAddressTaken, param: "name", message: "this address is or was in use"}
	case errors.Is(err, store.ErrTooManyWebhooks):
		return &apiError{status: http.StatusForbidden, code: gen.ErrorCodePlanLimitReached, message: store.ErrTooManyWebhooks.Error()}
	case errors.Is(err, store.ErrContactExists):
		return &apiError{status: http.StatusConflict, code: gen.ErrorCodeContactExists, param: "email", message: "a contact with this address already exists"}
	case errors.Is(err, store.ErrDomainTaken):
		return &apiError{
			status: http.StatusConflict, code: gen.ErrorCodeDomainTaken, param: "domain",
			message: "this account already has this domain, or it is the domain of the installation",
		}
	case errors.Is(err, store.ErrDomainNotVerified):
		return &apiError{
			status: http.StatusForbidden, code: gen.ErrorCodeDomainNotVerified, param: "domain",
			message: "domain: use the mail domain of the installation or a verified domain of this account",
		}
	case isLimit(err):
		return a.limitError(err)
	case errors.Is(err, store.ErrThreadLimit):
		return &apiError{
			status: http.StatusForbidden, code: gen.ErrorCodeLoopDetected,
			message: fmt.Sprintf("this inbox has sent %d messages to this thread within an hour", store.MaxThreadSends),
		}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFull):
		a.log.WarnContext(ctx, "store unavailable", "error", err, "request_id", requestID(ctx))
		return errUnavailable
	case errors.Is(err, context.Canceled):
		return errUnavailable // the client has disconnected
	}
	if failure, ok := errors.AsType[*decodeFailure](err); ok {
		if e := a.decodeError(failure.r, failure.error); e != nil {
			return e
		}
	}
	if errors.Is(err, ogenerrors.ErrSecurityRequirementIsNotSatisfied) {
		return errUnauthorized // the request has no key
	}
	a.log.ErrorContext(ctx, "request failed", "error", err, "request_id", requestID(ctx))
	return errInternal
}

func isLimit(err error) bool {
	_, limit := errors.AsType[*store.LimitError](err)
	_, paused := errors.AsType[*store.PausedError](err)
	return limit || paused
}

// limitError converts an error about a plan limit or a pause by the operator.
func (a *API) limitError(err error) *apiError {
	l, ok := errors.AsType[*store.LimitError](err)
	if !ok {
		p, _ := errors.AsType[*store.PausedError](err)
		return &apiError{status: http.StatusForbidden, code: gen.ErrorCodeSendingPaused, message: p.Error()}
	}
	switch l.Period {
	case store.PerInboxes:
		return &apiError{status: http.StatusForbidden, code: gen.ErrorCodePlanLimitReached, message: l.Error()}
	case store.PerMonth:
		return errTooManySends(gen.ErrorCodeMonthlyLimitReached, l, a.now())
	}
	return errTooManySends(gen.ErrorCodeDailyLimitReached, l, a.now())
}

func errTooManySends(code string, l *store.LimitError, now time.Time) *apiError {
	return &apiError{
		status: http.StatusTooManyRequests, code: code, message: l.Error(), retryAfter: secondsUntil(l.Resets, now),
	}
}

func (e *apiError) body(requestID string) gen.Error {
	b := gen.ErrorBody{Code: e.code, Message: cut(e.message), RequestID: requestID, Details: e.details}
	if e.param != "" {
		b.Param = gen.NewOptString(e.param)
	}
	return gen.Error{Error: b}
}

// NewError implements gen.Handler: it converts the errors that handlers and the
// security handler return.
func (a *API) NewError(ctx context.Context, err error) *gen.ErrorStatusCodeWithHeaders {
	e := a.classify(ctx, err)
	if e.status == http.StatusUnauthorized || e.code == gen.ErrorCodeIPNotAllowed {
		e = a.countByAddress(ctx, e)
	}
	info := infoOf(ctx)
	info.setErrorHeaders(e)
	out := &gen.ErrorStatusCodeWithHeaders{StatusCode: e.status, Response: e.body(info.id)}
	if e.retryAfter > 0 {
		out.RetryAfter = gen.NewOptInt(e.retryAfter)
	}
	return out
}

// decodeFailure is an error of the generated decoder with its request.
type decodeFailure struct {
	r *http.Request
	error
}

func (e *decodeFailure) Unwrap() error { return e.error }

// writeDecodeError handles requests that do not decode and responses that do
// not encode.
func (a *API) writeDecodeError(ctx context.Context, w http.ResponseWriter, r *http.Request, err error) {
	e := a.classify(ctx, &decodeFailure{r, err})
	if e == errMediaType && r.ContentLength == 0 {
		e = errBodyRequired // a missing body has no type
	}
	a.writeError(ctx, w, e)
}

func (a *API) routeNotFound(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	a.writeError(ctx, w, a.countByAddress(ctx, errNoRoute))
}

var errNoRoute = &apiError{status: http.StatusNotFound, code: gen.ErrorCodeRouteNotFound, message: "this path does not exist"}

func (a *API) methodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	if slices.Contains(strings.Split(allowed, ","), http.MethodGet) {
		allowed += "," + http.MethodHead
	}
	w.Header().Set("Allow", allowed)
	ctx := r.Context()
	a.writeError(ctx, w, a.countByAddress(ctx, errMethod))
}

var errMethod = &apiError{
	status: http.StatusMethodNotAllowed, code: gen.ErrorCodeMethodNotAllowed, message: "this method is not allowed here",
}

// writeError writes the error body that all errors share.
func (a *API) writeError(ctx context.Context, w http.ResponseWriter, e *apiError) {
	info := infoOf(ctx)
	info.setErrorHeaders(e)
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	body := e.body(info.id)
	b, err := json.Marshal(&body)
	if err != nil {
		a.log.ErrorContext(ctx, "write error body", "error", err, "request_id", info.id)
		b = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(e.status)
	_, _ = w.Write(b) // the client may have disconnected
}

// setErrorHeaders sets the headers that the generated error type lacks.
func (i *requestInfo) setErrorHeaders(e *apiError) {
	if i.w == nil {
		return
	}
	switch e.status {
	case http.StatusUnauthorized:
		i.w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusRequestTimeout: // the rest of the body belongs to this request
		i.w.Header().Set("Connection", "close")
	}
}

// secondsUntil rounds up, so that a caller that waits this long is not too
// early.
func secondsUntil(t, now time.Time) int {
	return max(1, int((t.Sub(now)+time.Second-1)/time.Second))
}

const maxMessage = 500

// cut limits the length of a library message, which may contain the caller's
// input.
func cut(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	n := maxMessage
	for n > 0 && s[n]&0xc0 == 0x80 { // not inside a rune
		n--
	}
	return s[:n] + "…"
}
