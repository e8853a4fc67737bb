package contractcheck

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

// Checker checks exchanges against one contract and counts them. It is safe for use by many
// goroutines.
type Checker struct {
	doc     *openapi3.T
	ops     []*Operation
	schemas *schemas
	client  *schemas // as a client sees them

	mu        sync.Mutex
	exchanges int
	seen      map[pair]int
	events    map[string]int // by type
}

// New returns a checker for a contract that Load has read.
func New(doc *openapi3.T) (*Checker, error) {
	c := &Checker{doc: doc, ops: operations(doc), seen: map[pair]int{}, events: map[string]int{}}
	if len(c.ops) == 0 {
		return nil, errors.New("the contract has no operations")
	}
	for _, op := range c.ops {
		if err := op.readFields(); err != nil {
			return nil, err
		}
	}
	var err error
	if c.schemas, err = newSchemas(doc, false); err == nil {
		c.client, err = newSchemas(doc, true)
	}
	return c, err
}

// Operations returns all operations of the contract, sorted by path.
func (c *Checker) Operations() []*Operation { return c.ops }

// Operation returns the operation with that operationId, or nil.
func (c *Checker) Operation(id string) *Operation {
	for _, op := range c.ops {
		if op.OperationID == id {
			return op
		}
	}
	return nil
}

// Value checks a JSON text against the named schema.
func (c *Checker) Value(schema string, text []byte) error {
	return c.schemas.check(under("#", "components", "schemas", schema), text)
}

// Request checks the parameters and the body of a request, but not its key. It returns an
// error for a path or method that the contract does not contain.
func (c *Checker) Request(req *http.Request, body []byte) error {
	op, params := find(c.ops, req.Method, req.URL)
	if op == nil {
		return fmt.Errorf("the contract has no %s %s", req.Method, req.URL.Path)
	}
	return c.request(op, req, params, body)
}

func (c *Checker) request(op *Operation, req *http.Request, params map[string]string, body []byte) error {
	return errors.Join(c.schemas.checkParams(op, req, params), c.schemas.checkBody(op, req.Header, body))
}

// maxChecked is the largest request body that is checked against its schema.
const maxChecked = 4 << 20

// Exchange checks a request and its response against the contract and counts them. responseBody
// may be nil for a response that continues, such as an event stream.
func (c *Checker) Exchange(req *http.Request, body []byte, res *http.Response, responseBody []byte) error {
	method := req.Method
	if method == http.MethodHead { // a HEAD response has the headers of GET
		method, responseBody = http.MethodGet, nil
	}
	op, params := find(c.ops, method, req.URL)
	if op == nil && req.Method == http.MethodHead {
		return nil
	}
	c.count(op, res.StatusCode)
	if op == nil {
		return notInContract(res, responseBody)
	}
	return errors.Join(c.checkRequest(op, req, params, body, res.StatusCode), c.checkResponse(op, res, responseBody))
}

// checkRequest finds a broken request that is not marked as one, or that the server
// accepted.
func (c *Checker) checkRequest(op *Operation, req *http.Request, params map[string]string, body []byte, status int) error {
	if len(body) > maxChecked || req.ContentLength > maxChecked {
		return nil
	}
	err := c.request(op, req, params, body)
	switch {
	case err == nil:
		return nil
	case status < http.StatusBadRequest:
		return fmt.Errorf("the contract does not allow the request, but the server accepted it: %w", brief(err))
	case !isBroken(req.Context()):
		return fmt.Errorf("the contract does not allow the request: %w", brief(err))
	}
	return nil
}

func (c *Checker) checkResponse(op *Operation, res *http.Response, responseBody []byte) error {
	if res.Header.Get("X-Request-Id") == "" {
		return errors.New("the response has no X-Request-Id")
	}
	documented := op.response(res.StatusCode)
	if documented == nil && !anywhere(res.StatusCode) {
		return fmt.Errorf("status %d is not documented: %s", res.StatusCode, cut(responseBody))
	}
	err := errors.Join(c.schemas.checkHeaders(op, res), c.schemas.checkResponse(op, res, responseBody, responseBody == nil))
	if err != nil {
		return fmt.Errorf("the response %d: %w: %s", res.StatusCode, brief(err), cut(responseBody))
	}
	if !isJSON(res) || responseBody == nil {
		return nil
	}
	if res.StatusCode >= http.StatusBadRequest && !hasOwnErrorBody(documented) {
		return checkError(documented, res, responseBody)
	}
	if documented.Content["application/json"].Schema.Ref == "#/components/schemas/FreeObject" {
		return nil // its contents are not defined by the contract
	}
	return checkTimes(responseBody)
}

// anywhere reports whether any operation may respond with the status, because the request
// did not reach an operation.
func anywhere(status int) bool {
	return status == http.StatusMethodNotAllowed || status == http.StatusRequestEntityTooLarge
}

func isJSON(res *http.Response) bool {
	return strings.HasPrefix(res.Header.Get("Content-Type"), "application/json")
}

const maxShown = 1000

// brief shortens errors: validators print whole schemas.
func brief(err error) error { return errors.New(cut([]byte(err.Error()))) }

func cut(b []byte) string {
	if len(b) <= maxShown {
		return string(b)
	}
	return string(b[:maxShown]) + " ..."
}
