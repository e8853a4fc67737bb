package contractcheck_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

func TestRequestChecksRequests(t *testing.T) {
	t.Parallel()

	c := newChecker(t)
	for _, tt := range []struct {
		name, method, path, body string
		good                     bool
	}{
		{"a literal segment is preferred to a parameter", "POST", "/v1/emails/batch", `{}`, false},
		{"an encoded slash stays in its segment", "DELETE", "/v1/suppressions/a%2Fb@c.example", ``, true},
		{"a parameter is never empty", "GET", "/v1/inboxes/", ``, false},
		{"an optional body may be absent", "POST", "/v1/inboxes", ``, true},
		{"a required body may not", "POST", "/v1/keys", ``, false},
		{"an address is checked", "POST", "/v1/inboxes/ibx_1/messages", `{"to":"no-address","subject":"s","text":"t"}`, false},
		{"base64 is padded", "POST", "/v1/inboxes/ibx_1/messages", `{"to":"a@b.example","subject":"s","text":"t","attachments":[{"filename":"f","content":"YQ"}]}`, false},
		{"a time is checked", "POST", "/v1/inboxes", `{"expires_at":"2027-01-01"}`, false},
		{"if and then are checked", "POST", "/v1/keys", `{"name":"n","mode":"restricted"}`, false},
		{"not is checked", "POST", "/v1/inboxes/ibx_1/simulate", `{"raw":"r","from":"a@b.example"}`, false},
		{"one of two fields is needed", "POST", "/v1/inboxes/ibx_1/messages", `{"to":"a@b.example","subject":"s"}`, false},
		{"keys of maps are checked", "POST", "/v1/inboxes", `{"metadata":{"":1}}`, false},
		{"a good send", "POST", "/v1/inboxes/ibx_1/messages", `{"to":"a@b.example","subject":"s","text":"t"}`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req, err := http.NewRequestWithContext(context.Background(), tt.method, "http://x"+tt.path, strings.NewReader(tt.body))
			must(t, err)
			req.Header.Set("Content-Type", "application/json")
			if err := c.Request(req, []byte(tt.body)); (err == nil) != tt.good {
				t.Errorf("the error is: %v", err)
			}
		})
	}
}
