package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error is an error response of the server. Calls return it wrapped: use
// errors.As to get it and errors.Is to compare its code.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the error code. It is empty if the response is not from Postroom,
	// for example from a proxy that cannot reach it.
	Code Code
	// Message describes the error for developers. The wording may change.
	Message string
	// Param is the field or parameter at fault, if there is one.
	Param string
	// Details lists all faults if there is more than one.
	Details []Fault
	// RequestID identifies the call in the server's log.
	RequestID string
	// RetryAfter is the pause that the server requests before a retry, or 0.
	RetryAfter time.Duration
}

// Fault is one fault of a request.
type Fault struct {
	Param   string `json:"param"`
	Message string `json:"message"`
}

// Error returns the code and the message.
func (e *Error) Error() string {
	text := string(e.Code) + ": " + e.Message
	if e.Code == "" {
		text = fmt.Sprintf("the server returned %d, which is not a Postroom response: %s", e.Status, e.Message)
	}
	if e.Param != "" && !strings.Contains(e.Message, e.Param) {
		text += " (" + e.Param + ")"
	}
	return text
}

// Is reports whether target is the code of e.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code && code != ""
}

// Temporary reports whether the same call may succeed within about a minute:
// too many requests, a server that starts or stops, or a proxy that cannot
// reach it. A limit of the plan is not temporary.
func (e *Error) Temporary() bool {
	switch e.Status {
	case http.StatusTooManyRequests:
		return e.Code == ErrRateLimited || e.Code == ""
	case http.StatusConflict:
		return e.Code == ErrIdempotencyInProgress
	case http.StatusServiceUnavailable:
		return true
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		return e.Code == ""
	}
	return false
}

// maxErrorBody is larger than any error body of Postroom.
const maxErrorBody = 1 << 20

// errorOf reads an error response.
func errorOf(res *http.Response, now time.Time) *Error {
	e := &Error{Status: res.StatusCode, RequestID: res.Header.Get("X-Request-Id"), RetryAfter: retryAfter(res.Header, now)}
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody)) // a truncated body still helps
	var response struct {
		Error struct {
			Code      Code    `json:"code"`
			Message   string  `json:"message"`
			Param     string  `json:"param"`
			RequestID string  `json:"request_id"`
			Details   []Fault `json:"details"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &response); err == nil && response.Error.Code != "" {
		e.Code, e.Message, e.Param, e.Details = response.Error.Code, response.Error.Message, response.Error.Param, slices.Clip(response.Error.Details)
		if response.Error.RequestID != "" {
			e.RequestID = response.Error.RequestID
		}
		return e
	}
	e.Message = foreign(res, body)
	return e
}

// foreign describes a response that is not from Postroom.
func foreign(res *http.Response, body []byte) string {
	if to := res.Header.Get("Location"); to != "" {
		return fmt.Sprintf("it redirects to %q: use the address that it is at", to)
	}
	const enough = 200
	words := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), 4*enough)]), "?")), " ")
	if len(words) > enough {
		words = strings.ToValidUTF8(words[:enough], "") + "..."
	}
	return strconv.Quote(words)
}

// retryAfter parses Retry-After, in seconds or as a date (RFC 9110 section
// 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
