package contractcheck

import (
	"bufio"
	"io"
	"net/http"
	"strings"
)

// Text reports an exchange, as it went over a connection, unless the contract
// foresees it. A request that is none to net/http never met the API, and neither
// did one that was refused before it was read: they are left out.
func (c *Checker) Text(t Reporter, request, answer string) {
	t.Helper()
	req, body, err := parseRequest(request)
	if err != nil {
		return
	}
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), req)
	if err != nil {
		t.Errorf("%.100q was answered %.100q: %v", request, answer, err)
		return
	}
	defer func() { _ = res.Body.Close() }() // of a text
	said, err := io.ReadAll(res.Body)
	if err != nil {
		t.Errorf("%s: %v", req.RequestURI, err)
	}
	c.report(t, req, body, res, said)
}

// report reports an exchange, unless the contract foresees it.
func (c *Checker) report(t Reporter, req *http.Request, body []byte, res *http.Response, answer []byte) {
	t.Helper()
	if err := c.Exchange(req, body, res, answer); err != nil {
		t.Errorf("%s %s (%s): %v", req.Method, req.URL.RequestURI(), res.Status, err)
	}
}

// parseRequest reads a request, as it is written to a connection, with its body.
func parseRequest(text string) (*http.Request, []byte, error) {
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(req.Body)
	return req, body, err
}
