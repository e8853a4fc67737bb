package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ogen-go/ogen/ogenerrors"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/ids"
	"github.com/postroom/postroom/internal/mail/plaintext"
	"github.com/postroom/postroom/internal/nearname"
	"github.com/postroom/postroom/store"
)

// Error is an error that the caller may see.
type Error struct {
	Status     int
	Code       string
	Message    string
	Param      string
	Rule       string // about sending, that refused
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
	ErrUnauthorized = &Error{Status: http.StatusUnauthorized, Code: gen.ErrorCodeUnauthorized, Message: "this API key is wrong: no key has this value"}
	ErrNotFound     = &Error{Status: http.StatusNotFound, Code: gen.ErrorCodeNotFound, Message: "not found"}
	ErrInternal     = &Error{Status: http.StatusInternalServerError, Code: gen.ErrorCodeInternalError, Message: "internal error"}
	ErrUnavailable  = &Error{Status: http.StatusServiceUnavailable, Code: gen.ErrorCodeUnavailable, Message: "the service is temporarily unavailable: try again", RetryAfter: 1}
)

// Classify converts any error to the one that the caller sees. It is the only
// place that knows status codes. Unknown errors are faults of the service: 500.
func (c *Chain) Classify(ctx context.Context, err error) *Error {
	var (
		known    *Error
		tooLarge *http.MaxBytesError
		taken    *store.TakenError
		refused  *store.Refused
	)
	switch {
	case errors.As(err, &known):
		return mistaken(ctx, known)
	case errors.As(err, &tooLarge):
		return errTooLarge(tooLarge.Limit)
	case errors.As(err, &taken):
		return conflict(gen.ErrorCodeAddressTaken, taken.Param, taken.Error())
	case errors.As(err, &refused):
		return c.refusal(ctx, refused)
	case errors.Is(err, store.ErrDamaged):
		c.log.ErrorContext(ctx, "damaged content: run postroom verify", "error", err, "request_id", RequestID(ctx))
	}
	for _, e := range sentinels {
		if errors.Is(err, e.from) {
			if e.log != "" {
				c.log.WarnContext(ctx, e.log, "error", err, "request_id", RequestID(ctx))
			}
			return mistaken(ctx, e.to)
		}
	}
	if e := decodeError(Request(ctx), err); e != nil {
		return mistaken(ctx, e)
	}
	if errors.Is(err, ogenerrors.ErrSecurityRequirementIsNotSatisfied) {
		return noKey(Request(ctx))
	}
	c.log.ErrorContext(ctx, "request failed", "error", err, "request_id", RequestID(ctx))
	return ErrInternal
}

// sentinels are the errors that are the same for every operation.
var sentinels = []struct {
	from error
	to   *Error
	log  string // what to log about it, if anything
}{
	{os.ErrDeadlineExceeded, errTooSlow, ""},
	{store.ErrNotFound, ErrNotFound, ""},
	{store.ErrDamaged, &Error{
		Status: http.StatusInternalServerError, Code: gen.ErrorCodeInternalError,
		Message: "the stored content of this message is damaged: the operator can run postroom verify",
	}, ""},
	{store.ErrFull, &Error{
		Status: http.StatusServiceUnavailable, Code: gen.ErrorCodeUnavailable, RetryAfter: 1,
		Message: "the storage of the server is full: its operator has to free space, then try again",
	}, "storage full"},
	{store.ErrUnavailable, ErrUnavailable, "store unavailable"},
	{context.Canceled, ErrUnavailable, ""}, // the client has disconnected
	{store.ErrCursor, Invalid("cursor", "must come from a previous page of this list, with the same filters"), ""},
	{store.ErrTooManyWebhooks, Forbidden(gen.ErrorCodePlanLimitReached, store.ErrTooManyWebhooks.Error()), ""},
	{store.ErrTooManyListEntries, Forbidden(gen.ErrorCodePlanLimitReached, store.ErrTooManyListEntries.Error()), ""},
	{store.ErrContactExists, conflict(gen.ErrorCodeContactExists, "email", "a contact with this address already exists"), ""},
	{store.ErrDomainTaken, conflict(gen.ErrorCodeDomainTaken, "domain", "this account already has this domain, or it is the domain of the installation"), ""},
	{store.ErrDomainNotVerified, &Error{
		Status: http.StatusForbidden, Code: gen.ErrorCodeDomainNotVerified, Param: "domain",
		Message: "domain: use the mail domain of the installation or a verified domain of this account",
	}, ""},
}

func conflict(code, param, message string) *Error {
	return &Error{Status: http.StatusConflict, Code: code, Param: param, Message: message}
}

// collections are the prefixes of ids by the segment of a path before them.
var collections = map[string]string{
	"inboxes": "ibx_", "messages": "msg_", "threads": "thr_", "drafts": "drf_", "attachments": "att_", "webhooks": "wh_", "lists": "lst_",
	"api-keys": "key_", "keys": "key_", "emails": "em_", "templates": "tmpl_", "contacts": "con_", "domains": "dom_",
}

// firstID is where a path such as /v1/inboxes/{inbox_id} has an ID; later segments may be
// words, such as wait.
const firstID = 3

// mistaken changes the message of a 404 error if it knows what is wrong with an id in the
// URL: it is mistyped, of another kind, or not an id.
func mistaken(ctx context.Context, e *Error) *Error {
	r := Request(ctx)
	if r == nil || e.Code != gen.ErrorCodeNotFound {
		return e
	}
	changed, path, named := *e, strings.Split(r.URL.Path, "/"), []string{}
	for _, values := range r.URL.Query() {
		named = append(named, values...)
	}
	for i, id := range slices.Concat(path, named) {
		prefix, kind := ids.Kind(id)
		before := ""
		if i > 0 && i < len(path) {
			before = collections[path[i-1]]
		}
		_, wanted := ids.Kind(before)
		switch typo := ids.Typo(id); {
		case typo != "":
			changed.Message = typo
		case before == "" || prefix == before, kind == "" && i != firstID:
			continue
		case kind != "":
			changed.Message = fmt.Sprintf("%s is %s, not %s", id, kind, wanted)
		case before == "ibx_" && strings.Contains(id, "@"):
			changed.Message = "not found: use the ID of the inbox, from GET /v1/inboxes?address=, instead of its address"
		case id == "":
			changed.Message = "not found: remove the slash at the end, or add the ID of " + wanted
		default:
			changed.Message = fmt.Sprintf("not found: the ID of %s begins with %s", wanted, before)
		}
		return &changed
	}
	return e
}

// refusals are the status and code of what each rule about sending refuses.
var refusals = map[store.Rule]struct {
	status int
	code   string
}{
	store.RuleDomain:      {http.StatusForbidden, gen.ErrorCodeDomainNotVerified},
	store.RuleSuspended:   {http.StatusForbidden, gen.ErrorCodeSendingPaused},
	store.RuleExpired:     {http.StatusForbidden, gen.ErrorCodeInboxExpired},
	store.RuleLoop:        {http.StatusForbidden, gen.ErrorCodeLoopDetected},
	store.RuleReplyOnly:   {http.StatusForbidden, gen.ErrorCodeRecipientNotAllowed},
	store.RuleSuppression: {http.StatusUnprocessableEntity, gen.ErrorCodeRecipientSuppressed},
	store.RulePause:       {http.StatusForbidden, gen.ErrorCodeSendingPaused},
	store.RuleMonth:       {http.StatusTooManyRequests, gen.ErrorCodeMonthlyLimitReached},
	store.RuleDay:         {http.StatusTooManyRequests, gen.ErrorCodeDailyLimitReached},
	store.RuleInboxes:     {http.StatusForbidden, gen.ErrorCodePlanLimitReached},
	store.RuleStop:        {http.StatusForbidden, gen.ErrorCodeSendingStopped},
	store.RuleList:        {http.StatusForbidden, gen.ErrorCodeRecipientBlocked},
	store.RuleLimit:       {http.StatusTooManyRequests, gen.ErrorCodeBudgetExceeded},
	store.RuleThread:      {http.StatusForbidden, gen.ErrorCodeLoopDetected},
}

// refusal converts the refusal of a rule about sending, and logs the rule.
func (c *Chain) refusal(ctx context.Context, r *store.Refused) *Error {
	at, known := refusals[r.Rule]
	if !known {
		c.log.ErrorContext(ctx, "request failed", "error", r, "rule", r.Rule, "request_id", RequestID(ctx))
		return ErrInternal
	}
	c.log.InfoContext(ctx, "send refused", "rule", r.Rule, "param", r.Param, "of", r.Of, "request_id", RequestID(ctx))
	e := &Error{Status: at.status, Code: at.code, Param: r.Param, Message: r.Text, Rule: string(r.Rule)}
	if !r.Retry.IsZero() {
		e.RetryAfter = secondsUntil(r.Retry, c.now())
	}
	for _, to := range r.Recipients[:min(len(r.Recipients), MaxFaults)] {
		e.Details = append(e.Details, gen.ErrorDetail{Param: to.Kind, Message: to.Email + " is suppressed"})
	}
	return e
}

func errorBody(e *Error, requestID string) gen.Error {
	b := gen.ErrorBody{Code: e.Code, Message: cut(e.Message), RequestID: requestID, Details: e.Details}
	if e.Param != "" {
		b.Param = gen.NewOptString(e.Param)
	}
	if e.Rule != "" {
		b.Rule = gen.NewOptString(e.Rule)
	}
	return gen.Error{Error: b}
}

// ErrStopping ends a wait when the service shuts down.
var ErrStopping = &Error{
	Status: http.StatusServiceUnavailable, Code: gen.ErrorCodeUnavailable, RetryAfter: 1,
	Message: "the server is shutting down: send the request again",
}

// NewError implements gen.Handler: it converts the errors that handlers and the
// security handler return.
func (c *Chain) NewError(ctx context.Context, err error) *gen.ErrorStatusCodeWithHeaders {
	info, e := infoOf(ctx), c.refuse(ctx, err)
	info.setErrorHeaders(e)
	return &gen.ErrorStatusCodeWithHeaders{StatusCode: e.Status, Response: errorBody(e, info.RequestID)}
}

// writeDecodeError handles requests that do not decode and responses that do
// not encode.
func (c *Chain) writeDecodeError(ctx context.Context, w http.ResponseWriter, r *http.Request, err error) {
	if again := c.rewritten(r, err); again != nil {
		c.server.ServeHTTP(w, again)
		return
	}
	Request(ctx).Body = r.Body // which the decoder has restored
	c.WriteError(ctx, w, c.Classify(ctx, err))
}

func (c *Chain) routeNotFound(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	e := &Error{Status: http.StatusNotFound, Code: gen.ErrorCodeRouteNotFound, Message: "this path does not exist" + nearPath(r.URL.Path)}
	if clean := path.Clean(r.URL.Path); clean != r.URL.Path && clean != "/" {
		e.Message += ": remove the slashes that are too many, as in " + clean
	}
	c.WriteError(ctx, w, c.countByAddress(ctx, e))
}

// nearPath is a hint at the path of the API that an unknown path probably means: one
// without /v1, or with another spelling of a segment.
func nearPath(unknown string) string {
	segments := strings.Split(strings.Trim(strings.TrimPrefix(unknown, "/v1"), "/"), "/")
	first := nearname.Nearest(segments[0], slices.Sorted(maps.Keys(contract().first)))
	if segments[0] = first; first == "" {
		return ""
	}
	return ": did you mean /v1/" + strings.Join(segments, "/") + "?"
}

// noKey says how to send a key, for a request that the security handler did not see.
func noKey(r *http.Request) *Error {
	e := *ErrUnauthorized
	const form = "send it in the header Authorization: Bearer <key>"
	switch {
	case r != nil && r.Header.Get("X-Api-Key") != "":
		e.Message = "the API key is in the header X-API-Key: " + form
	case r != nil && r.Header.Get("Authorization") != "":
		scheme, _, more := strings.Cut(r.Header.Get("Authorization"), " ")
		if e.Message = "the header Authorization has no Bearer key: write Authorization: Bearer <key>"; more && strings.EqualFold(scheme, "Basic") {
			e.Message = "Basic is not a way to sign in here: write Authorization: Bearer <key>"
		}
	default:
		e.Message = "the API key is missing: " + form
	}
	return &e
}

func (c *Chain) methodNotAllowed(w http.ResponseWriter, r *http.Request, allowed string) {
	if slices.Contains(strings.Split(allowed, ","), http.MethodGet) {
		allowed += "," + http.MethodHead
	}
	w.Header().Set("Allow", allowed)
	ctx := r.Context()
	c.WriteError(ctx, w, c.countByAddress(ctx, &Error{
		Status: http.StatusMethodNotAllowed, Code: gen.ErrorCodeMethodNotAllowed,
		Message: "this method is not allowed here: use " + strings.ReplaceAll(allowed, ",", ", "),
	}))
}

// WriteError writes the error body that all errors share.
func (c *Chain) WriteError(ctx context.Context, w http.ResponseWriter, e *Error) {
	info := infoOf(ctx)
	info.setErrorHeaders(e)
	body := errorBody(e, info.RequestID)
	b, err := json.Marshal(&body)
	if err != nil {
		c.log.ErrorContext(ctx, "write error body", "error", err, "request_id", info.RequestID)
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
	h := i.w.Header()
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	switch e.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", i.authenticate)
	case http.StatusRequestTimeout: // the rest of the body belongs to this request
		h.Set("Connection", "close")
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
