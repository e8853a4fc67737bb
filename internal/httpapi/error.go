package httpapi

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
	"github.com/postroom/postroom/internal/ids"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/store"
)

// Error is an error that the caller may see.
type Error struct {
	Status     int
	Code       string
	Message    string
	Param      string
	Details    []gen.ErrorDetail
	RetryAfter int // whole seconds; 0: no header
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Invalid returns a 400 error about param, or about the whole request if param
// is empty.
func Invalid(param, format string, args ...any) *Error {
	message := fmt.Sprintf(format, args...)
	if param != "" {
		message = param + " " + message
	}
	return &Error{Status: http.StatusBadRequest, Code: gen.ErrorCodeInvalidRequest, Param: param, Message: message}
}

// Forbidden returns a 403 error for what the current state or a policy forbids.
func Forbidden(code, message string) *Error {
	return &Error{Status: http.StatusForbidden, Code: code, Message: message}
}

// Errors of any operation.
var (
	ErrUnauthorized = &Error{Status: http.StatusUnauthorized, Code: gen.ErrorCodeUnauthorized, Message: "missing or invalid API key"}
	ErrNotFound     = &Error{Status: http.StatusNotFound, Code: gen.ErrorCodeNotFound, Message: "not found"}
	ErrInternal     = &Error{Status: http.StatusInternalServerError, Code: gen.ErrorCodeInternalError, Message: "internal error"}
	ErrUnavailable  = &Error{Status: http.StatusServiceUnavailable, Code: gen.ErrorCodeUnavailable, Message: "the service is temporarily unavailable: try again", RetryAfter: 1}
	errFull         = &Error{Status: http.StatusServiceUnavailable, Code: gen.ErrorCodeUnavailable, Message: "the storage of the server is full: its operator has to free space, then try again", RetryAfter: 1}
)

// Classify converts any error to the one that the caller sees. It is the only
// place that knows status codes. Unknown errors are faults of the service: 500.
func (c *Chain) Classify(ctx context.Context, err error) *Error {
	var known *Error
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		return mistyped(ctx, known)
	case errors.As(err, &tooLarge):
		return errTooLarge(tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errTooSlow
	case errors.Is(err, store.ErrNotFound):
		return mistyped(ctx, ErrNotFound)
	case errors.Is(err, store.ErrCursor):
		return &Error{
			Status: http.StatusBadRequest, Code: gen.ErrorCodeInvalidRequest, Param: "cursor",
			Message: "cursor must come from a previous page of this list, with the same filters",
		}
	case errors.Is(err, store.ErrAddressTaken):
		e := &Error{Status: http.StatusConflict, Code: gen.ErrorCodeAddressTaken, Param: "name", Message: "this address is or was in use"}
		if taken, ok := errors.AsType[*store.TakenError](err); ok {
			e.Param, e.Message = taken.Param, taken.Error()
		}
		return e
	case errors.Is(err, store.ErrTooManyWebhooks):
		return &Error{Status: http.StatusForbidden, Code: gen.ErrorCodePlanLimitReached, Message: store.ErrTooManyWebhooks.Error()}
	case errors.Is(err, store.ErrTooManyListEntries):
		return &Error{Status: http.StatusForbidden, Code: gen.ErrorCodePlanLimitReached, Message: store.ErrTooManyListEntries.Error()}
	case isListed(err):
		listed, _ := errors.AsType[*store.ListError](err)
		return &Error{Status: http.StatusForbidden, Code: gen.ErrorCodeRecipientBlocked, Param: listed.Param, Message: listed.Error()}
	case errors.Is(err, store.ErrContactExists):
		return &Error{Status: http.StatusConflict, Code: gen.ErrorCodeContactExists, Param: "email", Message: "a contact with this address already exists"}
	case errors.Is(err, store.ErrDomainTaken):
		return &Error{
			Status: http.StatusConflict, Code: gen.ErrorCodeDomainTaken, Param: "domain",
			Message: "this account already has this domain, or it is the domain of the installation",
		}
	case errors.Is(err, store.ErrDomainNotVerified):
		return &Error{
			Status: http.StatusForbidden, Code: gen.ErrorCodeDomainNotVerified, Param: "domain",
			Message: "domain: use the mail domain of the installation or a verified domain of this account",
		}
	case isLimit(err):
		return c.limitError(err)
	case isStopped(err):
		stopped, _ := errors.AsType[*store.StoppedError](err)
		return Forbidden(gen.ErrorCodeSendingStopped, stopped.Error())
	case isOverBudget(err):
		return overBudget(err, c.now())
	case errors.Is(err, store.ErrThreadLimit):
		return &Error{
			Status: http.StatusForbidden, Code: gen.ErrorCodeLoopDetected,
			Message: fmt.Sprintf("this inbox has sent %d messages to this thread within an hour", store.MaxThreadSends),
		}
	case errors.Is(err, store.ErrDamaged):
		c.log.ErrorContext(ctx, "damaged content: run postroom verify", "error", err, "request_id", RequestID(ctx))
		return &Error{
			Status: http.StatusInternalServerError, Code: gen.ErrorCodeInternalError,
			Message: "the stored content of this message is damaged: the operator can run postroom verify",
		}
	case errors.Is(err, store.ErrFull):
		c.log.WarnContext(ctx, "storage full", "error", err, "request_id", RequestID(ctx))
		return errFull
	case errors.Is(err, store.ErrUnavailable):
		c.log.WarnContext(ctx, "store unavailable", "error", err, "request_id", RequestID(ctx))
		return ErrUnavailable
	case errors.Is(err, context.Canceled):
		return ErrUnavailable // the client has disconnected
	}
	if failure, ok := errors.AsType[*decodeFailure](err); ok {
		if e := c.decodeError(failure.r, failure.error); e != nil {
			return e
		}
	}
	if errors.Is(err, ogenerrors.ErrSecurityRequirementIsNotSatisfied) {
		return ErrUnauthorized // the request has no key
	}
	c.log.ErrorContext(ctx, "request failed", "error", err, "request_id", RequestID(ctx))
	return ErrInternal
}

// mistyped changes the message of a 404 error if an id in the URL has a typing error.
func mistyped(ctx context.Context, e *Error) *Error {
	r := Request(ctx)
	if r == nil || e.Code != gen.ErrorCodeNotFound {
		return e
	}
	named := strings.Split(r.URL.Path, "/")
	for _, values := range r.URL.Query() {
		named = append(named, values...)
	}
	for _, id := range named {
		if typo := ids.Typo(id); typo != "" {
			changed := *e
			changed.Message = typo
			return &changed
		}
	}
	return e
}

func isLimit(err error) bool {
	_, limit := errors.AsType[*store.LimitError](err)
	_, paused := errors.AsType[*store.PausedError](err)
	return limit || paused
}

func isListed(err error) bool {
	_, listed := errors.AsType[*store.ListError](err)
	return listed
}

func isStopped(err error) bool {
	_, stopped := errors.AsType[*store.StoppedError](err)
	return stopped
}

func isOverBudget(err error) bool {
	_, over := errors.AsType[*store.BudgetError](err)
	return over
}

// overBudget converts an error about the limits of a key, an inbox or an account.
func overBudget(err error, now time.Time) *Error {
	over, _ := errors.AsType[*store.BudgetError](err)
	return &Error{
		Status: http.StatusTooManyRequests, Code: gen.ErrorCodeBudgetExceeded, Param: "limits." + over.Limit, Message: over.Error(),
		RetryAfter: secondsUntil(over.Resets, now),
	}
}

// limitError converts an error about a plan limit or a pause by the operator.
func (c *Chain) limitError(err error) *Error {
	l, ok := errors.AsType[*store.LimitError](err)
	if !ok {
		p, _ := errors.AsType[*store.PausedError](err)
		return &Error{Status: http.StatusForbidden, Code: gen.ErrorCodeSendingPaused, Message: p.Error()}
	}
	switch l.Period {
	case store.PerInboxes:
		return &Error{Status: http.StatusForbidden, Code: gen.ErrorCodePlanLimitReached, Message: l.Error()}
	case store.PerMonth:
		return errTooManySends(gen.ErrorCodeMonthlyLimitReached, l, c.now())
	}
	return errTooManySends(gen.ErrorCodeDailyLimitReached, l, c.now())
}

func errTooManySends(code string, l *store.LimitError, now time.Time) *Error {
	return &Error{
		Status: http.StatusTooManyRequests, Code: code, Message: l.Error(), RetryAfter: secondsUntil(l.Resets, now),
	}
}

func errorBody(e *Error, requestID string) gen.Error {
	b := gen.ErrorBody{Code: e.Code, Message: cut(e.Message), RequestID: requestID, Details: e.Details}
	if e.Param != "" {
		b.Param = gen.NewOptString(e.Param)
	}
	return gen.Error{Error: b}
}

// NewError implements gen.Handler: it converts the errors that handlers and the
// security handler return.
func (c *Chain) NewError(ctx context.Context, err error) *gen.ErrorStatusCodeWithHeaders {
	info := infoOf(ctx)
	if info.pause != nil {
		return &gen.ErrorStatusCodeWithHeaders{StatusCode: http.StatusServiceUnavailable} // not written
	}
	e := c.Classify(ctx, err)
	if e.Status == http.StatusUnauthorized || e.Code == gen.ErrorCodeIPNotAllowed {
		e = c.countByAddress(ctx, e)
	}
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
func (c *Chain) writeDecodeError(ctx context.Context, w http.ResponseWriter, r *http.Request, err error) {
	e := c.Classify(ctx, &decodeFailure{r, err})
	if e == errMediaType && r.ContentLength == 0 {
		e = errBodyRequired // a missing body has no type
	}
	c.WriteError(ctx, w, e)
}

func (c *Chain) routeNotFound(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	c.WriteError(ctx, w, c.countByAddress(ctx, errNoRoute))
}

var errNoRoute = &Error{Status: http.StatusNotFound, Code: gen.ErrorCodeRouteNotFound, Message: "this path does not exist"}

func (c *Chain) methodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	if slices.Contains(strings.Split(allowed, ","), http.MethodGet) {
		allowed += "," + http.MethodHead
	}
	w.Header().Set("Allow", allowed)
	ctx := r.Context()
	c.WriteError(ctx, w, c.countByAddress(ctx, errMethod))
}

var errMethod = &Error{
	Status: http.StatusMethodNotAllowed, Code: gen.ErrorCodeMethodNotAllowed, Message: "this method is not allowed here",
}

// WriteError writes the error body that all errors share.
func (c *Chain) WriteError(ctx context.Context, w http.ResponseWriter, e *Error) {
	info := infoOf(ctx)
	info.setErrorHeaders(e)
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	body := errorBody(e, info.id)
	b, err := json.Marshal(&body)
	if err != nil {
		c.log.ErrorContext(ctx, "write error body", "error", err, "request_id", info.id)
		b = []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(e.Status)
	_, _ = w.Write(b) // the client may have disconnected
}

// setErrorHeaders sets the headers that the generated error type lacks.
func (i *requestInfo) setErrorHeaders(e *Error) {
	if i.w == nil {
		return
	}
	switch e.Status {
	case http.StatusUnauthorized:
		i.w.Header().Set("WWW-Authenticate", i.authenticate)
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
	return plaintext.Truncate(s, maxMessage) + "…"
}
