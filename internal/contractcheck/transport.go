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

// Transport returns a transport that sends through base and reports every exchange that
// does not match the contract.
func (c *Checker) Transport(t Reporter, base http.RoundTripper) http.RoundTripper {
	return &transport{checker: c, t: t, base: base}
}

type transport struct {
	checker *Checker
	t       Reporter
	base    http.RoundTripper
	// wants reports whether the exchange is to be checked; nil means that all are.
	wants func(*http.Request, *http.Response) bool
	// broken means that any request may break the contract.
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
	var responseBody []byte
	if isJSON(res) { // the contract does not define other bodies
		if responseBody, err = io.ReadAll(res.Body); err != nil {
			return nil, fmt.Errorf("read the response: %w", err)
		}
		_ = res.Body.Close() // fully read
		res.Body = io.NopCloser(bytes.NewReader(responseBody))
		if responseBody, err = unpacked(res, responseBody); err != nil {
			return nil, err
		}
	}
	tr.checker.report(tr.t, req, body, res, responseBody)
	return res, nil
}

// unpacked returns the decoded body of a response, which may be gzipped if the client
// allows it.
func unpacked(res *http.Response, body []byte) ([]byte, error) {
	if res.Header.Get("Content-Encoding") != "gzip" {
		return body, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("decompress the response: %w", err)
	}
	return io.ReadAll(r)
}

// CloseIdleConnections implements an optional interface of http.Client.
func (tr *transport) CloseIdleConnections() {
	if base, ok := tr.base.(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

// takeBody reads the body of a request, unless it is too large to be checked, and returns
// it with a copy of the request that can still be sent. The copy keeps the length, because
// a body of unknown length is sent in chunks. A transport must not change the request that
// it receives.
func takeBody(req *http.Request) ([]byte, *http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody || req.ContentLength > maxChecked {
		return nil, req, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("read the request: %w", err)
	}
	_ = req.Body.Close() // fully read
	out := req.Clone(req.Context())
	out.Body = io.NopCloser(bytes.NewReader(body))
	return body, out, nil
}
