package contractcheck

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
)

// Proxy hands on all that it is asked to the server at target by base, and
// reports every exchange that the contract does not foresee: it stands between the
// server and programs that are not Go. The caller closes it.
func (c *Checker) Proxy(t Reporter, target *url.URL, base http.RoundTripper) *httptest.Server {
	return newProxy(t, target, c.Transport(t, base))
}

func newProxy(t Reporter, target *url.URL, transport http.RoundTripper) *httptest.Server {
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // what a stream says is not held up
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil { // the client is there still
				t.Errorf("%s %s: %v", r.Method, r.URL.RequestURI(), err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
		ErrorLog: log.New(io.Discard, "", 0), // of clients that go while they are answered
	})
}
