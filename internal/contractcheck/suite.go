package contractcheck

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
)

// oneIn is how many exchanges of one kind a suite has for each that it looks at,
// once it has looked at enough of them.
const oneIn = 25

// maxFaults bounds how many faults a suite tells of.
const maxFaults = 20

// Suite holds what all tests of a package say to servers against the contract.
// What the contract does not foresee fails the package, in End, since a call may
// outlive its test. Requests may break the contract, as long as the server refuses
// them too. It is safe for use by many goroutines.
type Suite struct {
	most int
	load func() (*Checker, error) // once

	mu     sync.Mutex
	used   bool
	kinds  map[pair]int
	passed int // not looked at
	faults []string
}

// NewSuite returns a suite for the contract at path, which is read when it is
// first needed. Of exchanges with the same operation and status it looks at the
// first most, and at one in 25 of the others, for tests that make very many; 0 means
// at all.
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

// Ready reads the contract, which takes a second or more, so that no test has to wait
// for it.
func (s *Suite) Ready() { s.checker() }

// Helper implements Reporter.
func (*Suite) Helper() {}

// Errorf implements Reporter: it notes a fault.
func (s *Suite) Errorf(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) < maxFaults {
		s.faults = append(s.faults, fmt.Sprintf(format, args...))
	}
}

// checker is nil when the contract cannot be read, which is a fault.
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

// Transport returns a transport that sends by base and notes every exchange
// that the contract does not foresee.
func (s *Suite) Transport(base http.RoundTripper) http.RoundTripper {
	c := s.checker()
	if c == nil {
		return base
	}
	wants := func(req *http.Request, res *http.Response) bool { return s.wants(c, req, res) }
	return &transport{checker: c, t: s, base: base, wants: wants, broken: true}
}

// Proxy is Checker.Proxy, whose faults the suite notes.
func (s *Suite) Proxy(target *url.URL, base http.RoundTripper) *httptest.Server {
	return newProxy(s, target, s.Transport(base))
}

// Exchanged holds an exchange against the contract whose request was written to a
// connection by hand. answer is nil for one that goes on.
func (s *Suite) Exchanged(request string, res *http.Response, answer []byte) {
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
		c.report(s, req.WithContext(Broken(req.Context())), body, res, answer)
	}
}

// wants says whether the exchange is to be looked at.
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

// End tells w of the faults, and in verbose tests of how much was looked at, and
// returns the exit status of the tests, which had code without it. name is that of
// the package.
func (s *Suite) End(w io.Writer, name string, verbose bool, code int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if verbose && s.used {
		if c, err := s.load(); err == nil {
			_, _ = fmt.Fprintf(w, "%s: %d exchanges held against the contract, and %d more of the same kinds not\n", name, c.Exchanges(), s.passed)
		}
	}
	for _, fault := range s.faults {
		_, _ = fmt.Fprintf(w, "%s: not as in the contract: %s\n", name, fault)
	}
	if len(s.faults) > 0 {
		return max(code, 1)
	}
	return code
}
