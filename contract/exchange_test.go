package contract_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/postroom/postroom/internal/contractcheck"
)

const jsonType = "application/json"

// call is one request, to send once or in variants.
type call struct {
	op     *contractcheck.Operation
	path   string // without the query
	query  url.Values
	header http.Header
	body   []byte // nil for none
	key    string // empty for none
	// broken means that the contract may refuse the request.
	broken bool
}

// with returns a copy of the call with a header.
func (c call) with(name, value string) call {
	c.header = c.header.Clone()
	if c.header == nil {
		c.header = http.Header{}
	}
	c.header.Set(name, value)
	return c
}

// asking returns a copy of the call with a query parameter.
func (c call) asking(name, value string) call {
	q := url.Values{name: {value}}
	for k, v := range c.query {
		if k != name {
			q[k] = v
		}
	}
	c.query = q
	return c
}

// saying returns a copy of the call with another body.
func (c call) saying(body string) call {
	c.body = []byte(body)
	return c
}

// as returns a copy of the call with another key.
func (c call) as(key string) call {
	c.key = key
	return c
}

// at returns a copy of the call to another path.
func (c call) at(path string) call {
	c.path = path
	return c
}

// breaking returns a copy of the call that may violate the contract.
func (c call) breaking() call {
	c.broken = true
	return c
}

// request returns the HTTP request of the call.
func (in *install) request(ctx context.Context, t *testing.T, c call) *http.Request {
	t.Helper()
	if c.broken {
		ctx = contractcheck.Broken(ctx)
	}
	address := in.api + c.path
	if len(c.query) > 0 {
		address += "?" + c.query.Encode()
	}
	var body io.Reader
	if c.body != nil {
		body = bytes.NewReader(c.body)
	}
	req, err := http.NewRequestWithContext(ctx, c.op.Method, address, body)
	must(t, err)
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	if c.body != nil {
		req.Header.Set("Content-Type", jsonType)
	}
	maps.Copy(req.Header, c.header)
	return req
}

// valid reports whether the contract allows the request.
func (in *install) valid(t *testing.T, c call) bool {
	t.Helper()
	return in.check.Request(in.request(t.Context(), t, c), c.body) == nil
}

// response is a complete response of the API.
type response struct {
	call   string
	status int
	header http.Header
	body   []byte
}

// send sends the request and validates the exchange against the contract.
func (in *install) send(t *testing.T, c call) response {
	t.Helper()
	return in.sendRequest(t, in.request(t.Context(), t, c))
}

func (in *install) sendRequest(t *testing.T, req *http.Request) response {
	t.Helper()
	a, err := in.try(t, req)
	if err != nil {
		t.Fatalf("%s: %v", a.call, err)
	}
	return a
}

// try is send for goroutines other than the test's own.
func (in *install) try(t *testing.T, req *http.Request) (response, error) {
	a := response{call: req.Method + " " + req.URL.RequestURI()}
	client := &http.Client{
		Transport:     in.check.Transport(t, in.base),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       patience,
	}
	res, err := client.Do(req)
	if err != nil {
		return a, err
	}
	defer func() { _ = res.Body.Close() }()
	a.status, a.header = res.StatusCode, res.Header
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		return a, nil // it goes on
	}
	if a.body, err = io.ReadAll(res.Body); err == nil {
		in.secrets.note(a)
	}
	return a, err
}

// want fails the test unless the response has the status.
func (a response) want(t *testing.T, status int) response {
	t.Helper()
	if a.status != status {
		t.Errorf("%s: got %d, want %d: %s", a.call, a.status, status, a.body)
	}
	return a
}

// wantCode fails the test unless the response is that error.
func (a response) wantCode(t *testing.T, status int, code string) response {
	t.Helper()
	if a.want(t, status); a.code() != code {
		t.Errorf("%s: got the code %q, want %q: %s", a.call, a.code(), code, a.body)
	}
	return a
}

// fault is the error body.
type fault struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Param   string `json:"param"`
	} `json:"error"`
}

// fault parses the error. It is empty if the response is not an error.
func (a response) fault() fault {
	var f fault
	_ = json.Unmarshal(a.body, &f) // the body of a file is not JSON
	return f
}

func (a response) code() string { return a.fault().Error.Code }

// read decodes the body or fails the test.
func read[T any](t *testing.T, a response) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(a.body, &v); err != nil {
		t.Fatalf("%s: %d %v: %s", a.call, a.status, err, a.body)
	}
	return v
}
