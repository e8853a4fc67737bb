package doctor

import (
	"context"
	"crypto/tls"
	"net/http"
	"strings"
)

// api requests the API at its public URL, and checks its certificate.
func (v *visit) api(ctx context.Context) []Result {
	if v.cfg.BaseURL == "" {
		return one(skipped("POSTROOM_BASE_URL is not set"))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(v.cfg.BaseURL, "/")+"/health", nil)
	if err != nil {
		return one(fail("%v", err).advise("check POSTROOM_BASE_URL"))
	}
	client := &http.Client{
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: v.cfg.RootCAs, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return one(fail("clients cannot reach the API: %v", err).
			advise("check that `postroom serve` runs, and the proxy, its certificate and POSTROOM_BASE_URL"))
	}
	_ = res.Body.Close() // it was not read
	switch {
	case res.StatusCode != http.StatusOK:
		return one(fail("%s returned %s", req.URL, res.Status).advise("check the log of the node, and the proxy"))
	case res.TLS != nil && len(res.TLS.PeerCertificates) > 0:
		return one(v.lasts(res.TLS.PeerCertificates[0].NotAfter, "of "+v.cfg.BaseURL))
	}
	return one(ok("it responds"))
}
