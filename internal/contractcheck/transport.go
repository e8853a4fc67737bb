package contractcheck

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
)

// Reporter is the part of testing.TB that a transport needs.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// Transport returns a transport that sends by base and reports every exchange
// that the contract does not foresee.
func (c *Checker) Transport(t Reporter, base http.RoundTripper) http.RoundTripper {
	return &transport{checker: c, t: t, base: base}
}

type transport struct {
	checker *Checker
	t       Reporter
	base    http.RoundTripper
	// wants says whether the exchange is to be looked at; nil means that all are.
	wants func(*http.Request, *http.Response) bool
	// broken says that any request may break the contract.
	broken bool
}

// RoundTrip implements http.RoundTripper.
func (tr *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	tr.t.Helper()
	if tr.broken {
		req = req.WithContext(Broken(req.Context()))
	}
	body, req, err := takeBody(req)
	if err != nil {
		return nil, err
	}
	res, err := tr.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if tr.wants != nil && !tr.wants(req, res) {
		return res, nil
	}
	var answer []byte
	if isJSON(res) { // of any other, the contract says nothing of the body
		if answer, err = io.ReadAll(res.Body); err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		_ = res.Body.Close() // read to its end
		res.Body = io.NopCloser(bytes.NewReader(answer))
		if answer, err = unpacked(res, answer); err != nil {
			return nil, err
		}
	}
	tr.checker.report(tr.t, req, body, res, answer)
	return res, nil
}

// unpacked is the body of an answer, which may be packed when the client allows it.
func unpacked(res *http.Response, body []byte) ([]byte, error) {
	if res.Header.Get("Content-Encoding") != "gzip" {
		return body, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("unpack the answer: %w", err)
	}
	return io.ReadAll(r)
}

// CloseIdleConnections is what http.Client looks for.
func (tr *transport) CloseIdleConnections() {
	if base, ok := tr.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// takeBody reads the body of a request, unless it is too large to be checked, and
// returns it with a request that has it still. The length stays as it was: one of
// unknown length is sent in chunks. A transport may not change the request that
// it is given.
func takeBody(req *http.Request) ([]byte, *http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody || req.ContentLength > maxChecked {
		return nil, req, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("read the request: %w", err)
	}
	_ = req.Body.Close() // read to its end
	out := req.Clone(req.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	return body, out, nil
}
