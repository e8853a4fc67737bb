package contract_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/contractcheck"
)

// eachOperation runs test for every operation of the contract.
func (w *world) eachOperation(t *testing.T, test func(t *testing.T, op *contractcheck.Operation)) {
	t.Helper()
	for _, op := range w.check.Operations() {
		t.Run(op.OperationID, func(t *testing.T) { test(t, op) })
	}
}

// eachBody runs test for every operation with a JSON body.
func (w *world) eachBody(t *testing.T, test func(t *testing.T, op *contractcheck.Operation)) {
	t.Helper()
	w.eachOperation(t, func(t *testing.T, op *contractcheck.Operation) {
		if bodyOf(op) != nil {
			test(t, op)
		}
	})
}

// wantDone fails the test unless a valid call succeeded.
func (a response) wantDone(t *testing.T) response {
	t.Helper()
	if a.status >= http.StatusBadRequest {
		t.Errorf("%s: %d %s", a.call, a.status, a.body)
	}
	return a
}

// everyExample sends every request example, or a plain request if an operation
// has none.
func everyExample(t *testing.T, w *world) {
	w.eachOperation(t, func(t *testing.T, op *contractcheck.Operation) {
		names := examples(op)
		if len(names) == 0 {
			w.send(t, w.good(t, op)).wantDone(t)
		}
		for _, name := range names {
			c := w.good(t, op)
			c.body = w.example(t, op, name)
			w.send(t, c).wantDone(t)
		}
		if op.RequestBody != nil && !op.RequestBody.Value.Required {
			c := w.good(t, op)
			c.body = nil
			w.send(t, c).wantDone(t)
		}
	})
}

// unreadable maps bodies that are not JSON, not a JSON object, or not text to
// the code of their error.
var unreadable = map[string]string{ // and the code of the error
	`{"name":`:                     "invalid_json",
	`{"name":"a"} {"name":"b"}`:    "invalid_json",
	`{'name':'a'}`:                 "invalid_json",
	`{"name":"a",}`:                "invalid_json",
	`{"name":01}`:                  "invalid_json",
	"{\"name\":\"a\nb\"}":          "invalid_json",
	"\xef\xbb\xbf{}":               "invalid_json",
	"\x00":                         "invalid_json",
	` `:                            "invalid_json",
	strings.Repeat(`[`, 100_000):   "invalid_json",
	strings.Repeat(`{"a":`, 20000): "invalid_json",
	`[]`:                           "invalid_request",
	`"name"`:                       "invalid_request",
	`null`:                         "invalid_request",
	`7`:                            "invalid_request",
}

// bodiesMustBeRead sends unreadable bodies and bodies with an unknown field.
func bodiesMustBeRead(t *testing.T, w *world) {
	w.eachBody(t, func(t *testing.T, op *contractcheck.Operation) {
		c := w.good(t, op).breaking()
		for body, code := range unreadable {
			a := w.send(t, c.saying(body)).want(t, http.StatusBadRequest)
			if a.code() != code {
				t.Errorf("%.40q: got %.300s, want %s", body, a.body, code)
			}
		}
		if op.OperationID == "callMcp" {
			return // accepts any object
		}
		more := c.saying(strings.Replace(string(c.body), "{", `{"surprise":1,`, 1))
		if string(c.body) == "{}" {
			more = c.saying(`{"surprise":1}`)
		}
		a := w.send(t, more).wantCode(t, http.StatusBadRequest, "invalid_request")
		if got := a.fault().Error.Param; got != "surprise" {
			t.Errorf("%s: an unknown field: param %q", a.call, got)
		}
	})
}

func bodiesMustBeOfTheRightType(t *testing.T, w *world) {
	w.eachBody(t, func(t *testing.T, op *contractcheck.Operation) {
		c := w.good(t, op).breaking()
		w.send(t, c.with("Content-Type", "text/plain")).wantCode(t, http.StatusUnsupportedMediaType, "unsupported_media_type")
		w.send(t, c.with("Content-Type", "")).wantCode(t, http.StatusUnsupportedMediaType, "unsupported_media_type")
	})
}

// bodiesMustNotBeTooLarge announces a body over the limit, which is refused
// before it is sent.
func bodiesMustNotBeTooLarge(t *testing.T, w *world) {
	w.eachBody(t, func(t *testing.T, op *contractcheck.Operation) {
		req := w.request(t.Context(), t, w.good(t, op).breaking())
		conn, err := net.Dial("tcp", req.URL.Host)
		must(t, err)
		defer func() { _ = conn.Close() }() // the server may have closed it
		must(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
			req.Method, req.URL.RequestURI(), req.URL.Host, firstKey, jsonType, 60<<20+1)
		must(t, err)
		res, err := http.ReadResponse(bufio.NewReader(conn), req)
		must(t, err)
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		must(t, err)
		if err := w.check.Exchange(req, nil, res, body); err != nil {
			t.Error(err)
		}
		response{req.URL.Path, res.StatusCode, res.Header, body}.wantCode(t, http.StatusRequestEntityTooLarge, "payload_too_large")
	})
}

// idsMustBeOfSomething replaces one id of the path at a time with an unknown,
// too long or invalid one.
func idsMustBeOfSomething(t *testing.T, w *world) {
	w.eachOperation(t, func(t *testing.T, op *contractcheck.Operation) {
		if op.OperationID == "downloadFile" {
			return // tokens have their own tests
		}
		for _, param := range paramIn.FindAllString(op.Path, -1) {
			wrong := func(value string) call {
				c := w.good(t, op).breaking()
				return c.at(w.pathWith(op, func(name string) string {
					if "{"+name+"}" == param {
						return value
					}
					return w.id(t, op, name)
				}))
			}
			w.send(t, wrong("ibx_00000000000000000000000000")).wantCode(t, http.StatusNotFound, "not_found")
			w.send(t, wrong(strings.Repeat("x", 300))).wantCode(t, http.StatusNotFound, "not_found")
			w.send(t, wrong("msg_\x00")).wantCode(t, http.StatusNotFound, "not_found")
			w.send(t, wrong("msg_\xff")).wantCode(t, http.StatusNotFound, "not_found")
		}
	})
}
