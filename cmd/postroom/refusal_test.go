package main

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/smtp"
)

// TestRefusalsSayWhetherToTryAgain checks that a client gives up a message that is refused
// for good, and keeps one that can be sent later.
func TestRefusalsSayWhetherToTryAgain(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  httpapi.Error
		want string
	}{
		{httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeTestModeMismatch}, "550 5.7.1"},
		{httpapi.Error{Status: http.StatusForbidden, Code: gen.ErrorCodeDomainNotVerified}, "550 5.7.1"},
		{httpapi.Error{Status: http.StatusBadRequest, Code: gen.ErrorCodeInvalidRequest}, "554 5.6.0"},
		{httpapi.Error{Status: http.StatusConflict, Code: gen.ErrorCodeIdempotencyInProgress}, "451 4.7.1"},
		{httpapi.Error{Status: http.StatusTooManyRequests, Code: gen.ErrorCodeRateLimited}, "451 4.7.1"},
		{httpapi.Error{Status: http.StatusServiceUnavailable, Code: gen.ErrorCodeUnavailable}, "451 4.3.0"},
	} {
		if r, ok := errors.AsType[*smtp.Reply](refusal(&tt.err)); !ok || fmt.Sprint(r.Code, " ", r.Enhanced) != tt.want {
			t.Errorf("%s: %v, want %s", tt.err.Code, r, tt.want)
		}
	}
}
