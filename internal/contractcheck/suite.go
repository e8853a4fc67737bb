package contractcheck

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
)

// oneIn is the sample rate for exchanges of one kind, once a suite has checked enough of
// them: it checks one in oneIn.
const oneIn = 25

// maxFaults bounds how many faults a suite reports.
const maxFaults = 20

// Suite checks the exchanges of all tests of a package against the contract. A mismatch
// fails the package, in End, because a call may outlive its test. Requests may break the
// contract, as long as the server refuses them too. It is safe for use by many goroutines.
type Suite struct {
	most int
	load func() (*Checker, error) // once

	mu     sync.Mutex
	used   bool
	kinds  map[pair]int
	passed int // not checked
	faults []string
}

// NewSuite returns a suite for the contract at path, which it reads when it first needs it.
// For each operation and status it checks the first most exchanges, and then one in 25, for
// tests that make very many; 0 means that it checks all.
func NewSuite(path string, most int) *Suite {
	s := &Suite{most: most, kinds: map[pair]int{}}
	s.load = sync.OnceValues(func() (*Checker, error) {
		doc, err := Load(path)
		if err != nil {
			return nil, err
		}
		return New(doc)
	})
	return s
}

// Ready reads the contract, which takes a second or more, so that no test has to wait for
// it.
func (s *Suite) Ready() { s.checker() }

// Helper implements Reporter.
func (*Suite) Helper() {}

// Errorf implements Reporter: it records a fault.
func (s *Suite) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
}

// checker returns nil if the contract cannot be read, which is a fault.
func (s *Suite) checker() *Checker {
	c, err := s.load()
	if err != nil {
		s.Errorf("%v", err)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = true
	return c
}

// Transport returns a transport that sends through base and records every exchange that
// does not match the contract.
func (s *Suite) Transport(base http.RoundTripper) http.RoundTripper {
	c := s.checker()
	if c == nil {
		return base
	}
	wants := func(req *http.Request, res *http.Response) bool { return s.wants(c, req, res) }
	return &transport{checker: c, t: s, base: base, wants: wants, broken: true}
}

// Proxy is Checker.Proxy with the suite as the reporter.
func (s *Suite) Proxy(target *url.URL, base http.RoundTripper) *httptest.Server {
	return newProxy(s, target, s.Transport(base))
}

// Exchanged checks an exchange whose request was written to a connection directly. responseBody
// is nil for a response that continues, such as a stream.
func (s *Suite) Exchanged(request string, res *http.Response, responseBody []byte) {
	c := s.checker()
	if c == nil {
		return
	}
	req, body, err := parseRequest(request)
	if err != nil {
		s.Errorf("%.100q: %v", request, err)
		return
	}
	if s.wants(c, req, res) {
		c.report(s, req.WithContext(Broken(req.Context())), body, res, responseBody)
	}
}

// wants reports whether the exchange is to be checked.
func (s *Suite) wants(c *Checker, req *http.Request, res *http.Response) bool {
	if s.most == 0 {
		return true
	}
	kind := pair{req.Method, res.StatusCode}
	if op, _ := find(c.ops, req.Method, req.URL); op != nil {
		kind.operation = op.OperationID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kinds[kind]++
	if n := s.kinds[kind]; n > s.most && n%oneIn != 0 {
		s.passed++
		return false
	}
	return true
}

// End writes the faults to w, in verbose tests also how many exchanges were checked, and
// returns the exit status of the tests. code is their exit status without the suite, and
// name is the name of the package.
func (s *Suite) End(w io.Writer, name string, verbose bool, code int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if verbose && s.used {
		if c, err := s.load(); err == nil {
			_, _ = fmt.Fprintf(w, "%s: %d exchanges checked against the contract, and %d more of the same kinds skipped\n", name, c.Exchanges(), s.passed)
		}
	}
	for _, fault := range s.faults {
		_, _ = fmt.Fprintf(w, "%s: does not match the contract: %s\n", name, fault)
	}
	if len(s.faults) > 0 {
		return max(code, 1)
	}
	return code
}
