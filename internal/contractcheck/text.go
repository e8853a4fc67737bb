package contractcheck

import (
	"bufio"
	"io"
	"net/http"
	"strings"
)

// Text checks an exchange that went over a connection, and reports a mismatch. It ignores a
// text that net/http does not read as a request, and a request that was refused before it
// was read, because neither reached the API.
func (c *Checker) Text(t Reporter, request, response string) {
	t.Helper()
	req, body, err := parseRequest(request)
	if err != nil {
		return
	}
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(response)), req)
	if err != nil {
		t.Errorf("%.100q got %.100q: %v", request, response, err)
		return
	}
	defer func() { _ = res.Body.Close() }() // the body is in memory
	said, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%s: %v", req.RequestURI, err)
	}
	c.report(t, req, body, res, said)
}

// report reports an exchange that does not match the contract.
func (c *Checker) report(t Reporter, req *http.Request, body []byte, res *http.Response, responseBody []byte) {
	t.Helper()
	if err := c.Exchange(req, body, res, responseBody); err != nil {
		t.Errorf("%s %s (%s): %v", req.Method, req.URL.RequestURI(), res.Status, err)
	}
}

// parseRequest parses a request with its body, as written to a connection.
func parseRequest(text string) (*http.Request, []byte, error) {
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(req.Body)
	return req, body, err
}
