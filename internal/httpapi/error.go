package httpapi

import (
	"fmt"
	"net/http"

	"github.com/postroom/postroom/gen"
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
)
