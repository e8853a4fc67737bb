package client

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestErrors(t *testing.T) {
	t.Parallel()
	const whole = `{"error":{"code":"invalid_request","message":"subject must be 1 to 998 characters","param":"subject","request_id":"req_1","new":1,
		"details":[{"param":"to[1].email","message":"is not an email address"}]},"new":{}}`
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    *Error
		text    string
	}{
		{"all fields", respond(400, whole, "X-Request-Id", "req_1"), &Error{
			Status: 400, Code: ErrInvalidRequest, Message: "subject must be 1 to 998 characters", Param: "subject", RequestID: "req_1",
			Details: []Fault{{"to[1].email", "is not an email address"}},
		}, "invalid_request: subject must be 1 to 998 characters"},
		{
			"a parameter that the message does not name", respond(400, `{"error":{"code":"invalid_request","message":"is too long","param":"to[0]","request_id":"req_1"}}`),
			&Error{Status: 400, Code: ErrInvalidRequest, Message: "is too long", Param: "to[0]", RequestID: "req_1"}, "invalid_request: is too long (to[0])",
		},
		{"a code that is new", refusal(418, "is_a_teapot"), &Error{Status: 418, Code: "is_a_teapot", Message: "no", RequestID: "req_1"}, "is_a_teapot: no"},
		{
			"when to come back", refusal(429, ErrDailyLimitReached, "Retry-After", "3600"),
			&Error{Status: 429, Code: ErrDailyLimitReached, Message: "no", RequestID: "req_1", RetryAfter: time.Hour}, "daily_limit_reached: no",
		},
		{
			"the body of a proxy", respond(413, "<h1>\n Too  large\x1b[31m</h1>", "Content-Type", "text/html", "X-Request-Id", "r1"),
			&Error{Status: 413, Message: `"<h1> Too large\x1b[31m</h1>"`, RequestID: "r1"}, `the server returned 413, which is not a Postroom response: "<h1> Too large\x1b[31m</h1>"`,
		},
		{"a long body of a proxy", respond(500, strings.Repeat("é", 1000), "Content-Type", "text/plain"), &Error{Status: 500, Message: `"` + strings.Repeat("é", 100) + `..."`}, ""},
		{"JSON of another server", respond(404, `{"error":"no such page"}`), &Error{Status: 404, Message: `"{\"error\":\"no such page\"}"`}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _ := newTestClient(t, newTestServer(t, tt.handler).URL)
			err := getInbox(c)
			got, ok := errors.AsType[*Error](err)
			if d := cmp.Diff(tt.want, got); !ok || d != "" {
				t.Errorf("%v: -want +got:\n%s", err, d)
			}
			if tt.text != "" && got.Error() != tt.text {
				t.Errorf("it says %q, want %q", got, tt.text)
			}
			if err != nil && got != nil && err.Error() != got.Error() {
				t.Errorf("the error of the call is %q, want %q", err, got)
			}
			if tt.want.Code != "" && !errors.Is(err, tt.want.Code) || errors.Is(err, ErrNotFound) || errors.Is(err, Code("")) {
				t.Errorf("%v is not compared by its code", err)
			}
		})
	}
}

// Each code of the contract has a constant.
func TestCodesAreTheContracts(t *testing.T) {
	t.Parallel()
	source := readFile(t, "code.go")
	schema, ok := contractOf(t).Components.Schemas["ErrorCode"].(map[string]any)
	values, ok2 := schema["x-extensible-enum"].([]any)
	if !ok || !ok2 || len(values) == 0 {
		t.Fatal("no codes in the contract")
	}
	if n := strings.Count(source, " = Code(gen.ErrorCode"); n != len(values) {
		t.Errorf("%d codes have a name in code.go, and the contract has %d", n, len(values))
	}
}
