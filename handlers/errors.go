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
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
)

var (
	errContentRequired = &httpapi.Error{Status: http.StatusBadRequest, Code: gen.ErrorCodeContentRequired, Param: "text", Message: "give text, html or both"}
	errNoInbox         = &httpapi.Error{Status: http.StatusNotFound, Code: gen.ErrorCodeNotFound, Param: "inbox_id", Message: "inbox_id: inbox not found, or this key has no access to it"}
	errExpired         = &httpapi.Error{Status: http.StatusGone, Code: gen.ErrorCodeMessageExpired, Message: "the content of this message has been deleted"}
	errLinkInvalid     = &httpapi.Error{Status: http.StatusForbidden, Code: gen.ErrorCodeLinkInvalid, Message: "this link is invalid or has expired"}
	errNoFiles         = &httpapi.Error{Status: http.StatusNotFound, Code: gen.ErrorCodeNotFound, Message: "download links are not available on this installation"}
	errDraftNotPending = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeDraftNotPending, Message: "this draft has already been approved or rejected"}
	errTestMode        = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeTestModeMismatch, Message: "a test key cannot change or decide a live draft: use a live key"}
	errDraftChanged    = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeDraftChanged, Message: "this draft has changed since you read it: read it again"}
	errNotCancellable  = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeNotCancellable, Message: "this email is no longer scheduled"}
	errWebhookDisabled = &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeWebhookDisabled, Message: "this webhook endpoint is disabled"}
)

// classify converts any error to the one that the caller sees. It is the only
// place that knows status codes. Unknown errors are faults of the service: 500.
func (a *API) classify(ctx context.Context, err error) *httpapi.Error {
	var known *httpapi.Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &tooLarge):
		return errTooLarge(tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errTooSlow
	case errors.Is(err, store.ErrNotFound):
		return httpapi.ErrNotFound
	case errors.Is(err, store.ErrCursor):
		return &httpapi.Error{
			Status: http.StatusBadRequest, Code: gen.ErrorCodeInvalidRequest, Param: "cursor",
			Message: "cursor must come from a previous page of this list, with the same filters",
		}
	case errors.Is(err, store.ErrAddressTaken):
		return &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeAddressTaken, Param: "name", Message: "this address is or was in use"}
	case errors.Is(err, store.ErrTooManyWebhooks):
		return &httpapi.Error{Status: http.StatusForbidden, Code: gen.ErrorCodePlanLimitReached, Message: store.ErrTooManyWebhooks.Error()}
	case errors.Is(err, store.ErrContactExists):
		return &httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeContactExists, Param: "email", Message: "a contact with this address already exists"}
	case errors.Is(err, store.ErrDomainTaken):
		return &httpapi.Error{
			Status: http.StatusConflict, Code: gen.ErrorCodeDomainTaken, Param: "domain",
			Message: "this account already has this domain, or it is the domain of the installation",
		}
	case errors.Is(err, store.ErrDomainNotVerified):
		return &httpapi.Error{
			Status: http.StatusForbidden, Code: gen.ErrorCodeDomainNotVerified, Param: "domain",
			Message: "domain: use the mail domain of the installation or a verified domain of this account",
		}
	case isLimit(err):
		return a.limitError(err)
	case errors.Is(err, store.ErrThreadLimit):
		return &httpapi.Error{
			Status: http.StatusForbidden, Code: gen.ErrorCodeLoopDetected,
			Message: fmt.Sprintf("this inbox has sent %d messages to this thread within an hour", store.MaxThreadSends),
		}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrFull):
		a.log.WarnContext(ctx, "store unavailable", "error", err, "request_id", requestID(ctx))
		return httpapi.ErrUnavailable
	case errors.Is(err, context.Canceled):
		return httpapi.ErrUnavailable // the client has disconnected
	}
	if failure, ok := errors.AsType[*decodeFailure](err); ok {
		if e := a.decodeError(failure.r, failure.error); e != nil {
			return e
		}
	}
	if errors.Is(err, ogenerrors.ErrSecurityRequirementIsNotSatisfied) {
		return httpapi.ErrUnauthorized // the request has no key
	}
	a.log.ErrorContext(ctx, "request failed", "error", err, "request_id", requestID(ctx))
	return httpapi.ErrInternal
}

func isLimit(err error) bool {
	_, limit := errors.AsType[*store.LimitError](err)
	_, paused := errors.AsType[*store.PausedError](err)
	return limit || paused
}

// limitError converts an error about a plan limit or a pause by the operator.
func (a *API) limitError(err error) *httpapi.Error {
	l, ok := errors.AsType[*store.LimitError](err)
	if !ok {
		p, _ := errors.AsType[*store.PausedError](err)
		return &httpapi.Error{Status: http.StatusForbidden, Code: gen.ErrorCodeSendingPaused, Message: p.Error()}
	}
	switch l.Period {
	case store.PerInboxes:
		return &httpapi.Error{Status: http.StatusForbidden, Code: gen.ErrorCodePlanLimitReached, Message: l.Error()}
	case store.PerMonth:
		return errTooManySends(gen.ErrorCodeMonthlyLimitReached, l, a.now())
	}
	return errTooManySends(gen.ErrorCodeDailyLimitReached, l, a.now())
}

func errTooManySends(code string, l *store.LimitError, now time.Time) *httpapi.Error {
	return &httpapi.Error{
		Status: http.StatusTooManyRequests, Code: code, Message: l.Error(), RetryAfter: secondsUntil(l.Resets, now),
	}
}

func errorBody(e *httpapi.Error, requestID string) gen.Error {
	b := gen.ErrorBody{Code: e.Code, Message: cut(e.Message), RequestID: requestID, Details: e.Details}
	if e.Param != "" {
		b.Param = gen.NewOptString(e.Param)
	}
	return gen.Error{Error: b}
}

// NewError implements gen.Handler: it converts the errors that handlers and the
// security handler return.
func (a *API) NewError(ctx context.Context, err error) *gen.ErrorStatusCodeWithHeaders {
	e := a.classify(ctx, err)
	if e.Status == http.StatusUnauthorized || e.Code == gen.ErrorCodeIPNotAllowed {
		e = a.countByAddress(ctx, e)
	}
	info := infoOf(ctx)
	info.setErrorHeaders(e)
	out := &gen.ErrorStatusCodeWithHeaders{StatusCode: e.Status, Response: errorBody(e, info.id)}
	if e.RetryAfter > 0 {
		out.RetryAfter = gen.NewOptInt(e.RetryAfter)
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

var errNoRoute = &httpapi.Error{Status: http.StatusNotFound, Code: gen.ErrorCodeRouteNotFound, Message: "this path does not exist"}

func (a *API) methodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	if slices.Contains(strings.Split(allowed, ","), http.MethodGet) {
		allowed += "," + http.MethodHead
	}
	w.Header().Set("Allow", allowed)
	ctx := r.Context()
	a.writeError(ctx, w, a.countByAddress(ctx, errMethod))
}

var errMethod = &httpapi.Error{
	Status: http.StatusMethodNotAllowed, Code: gen.ErrorCodeMethodNotAllowed, Message: "this method is not allowed here",
}

// writeError writes the error body that all errors share.
func (a *API) writeError(ctx context.Context, w http.ResponseWriter, e *httpapi.Error) {
	info := infoOf(ctx)
	info.setErrorHeaders(e)
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	body := errorBody(e, info.id)
	b, err := json.Marshal(&body)
	if err != nil {
		a.log.ErrorContext(ctx, "write error body", "error", err, "request_id", info.id)
		b = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(e.Status)
	_, _ = w.Write(b) // the client may have disconnected
}

// setErrorHeaders sets the headers that the generated error type lacks.
func (i *requestInfo) setErrorHeaders(e *httpapi.Error) {
	if i.w == nil {
		return
	}
	switch e.Status {
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
