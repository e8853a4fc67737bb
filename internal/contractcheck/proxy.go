package contractcheck

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
)

// Proxy forwards every request to the server at target through base, and reports every
// exchange that does not match the contract. It is for clients that are not written in Go.
// The caller closes it.
func (c *Checker) Proxy(t Reporter, target *url.URL, base http.RoundTripper) *httptest.Server {
	return newProxy(t, target, c.Transport(t, base))
}

func newProxy(t Reporter, target *url.URL, transport http.RoundTripper) *httptest.Server {
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // do not delay streams
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil { // the client is still connected
				t.Errorf("%s %s: %v", r.Method, r.URL.RequestURI(), err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
		ErrorLog: log.New(io.Discard, "", 0), // clients that disconnect during a response are not errors
	})
}
