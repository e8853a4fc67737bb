package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// maxHealth bounds a response of /health in bytes.
const maxHealth = 4 << 10

// health is a node's response to /health.
type health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

// nodeState is the state of the node on this machine.
type nodeState struct {
	health  health
	err     error
	absent  bool // connection refused
	unknown bool // its port is unknown
}

// callNode requests /health from the node on this machine.
func (v *visit) callNode(ctx context.Context) nodeState {
	host, port, err := net.SplitHostPort(v.cfg.Listens)
	if err != nil || port == "0" {
		return nodeState{unknown: true}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	said, _, err := v.health(ctx, "http://"+net.JoinHostPort(host, port))
	return nodeState{health: said, err: err, absent: errors.Is(err, syscall.ECONNREFUSED)}
}

// health requests /health at a base URL. It also returns when the server's
// certificate expires, or zero without TLS.
func (v *visit) health(ctx context.Context, base string) (health, time.Time, error) {
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: v.cfg.RootCAs, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true, Proxy: nil},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	var said health
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/health", nil)
	if err != nil {
		return said, time.Time{}, err
	}
	res, err := client.Do(req)
	if err != nil {
		return said, time.Time{}, err
	}
	defer func() { _ = res.Body.Close() }() // nothing to do about an error
	var until time.Time
	if res.TLS != nil && len(res.TLS.PeerCertificates) > 0 {
		until = res.TLS.PeerCertificates[0].NotAfter
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxHealth)).Decode(&said); err != nil || said.Status == "" {
		return said, until, fmt.Errorf("%s/health returned %s, which is not a Postroom response", base, res.Status)
	}
	return said, until, nil
}

// nodeCheck reports whether a node runs here, and whether it has this version.
func (v *visit) nodeCheck(ctx context.Context) []Result {
	n, ready := v.node.get(ctx)
	switch {
	case ready && n.unknown:
		return one(skipped("its port is unknown"))
	case ready && n.absent:
		return one(warn("no node is running here").advise("run: postroom serve"))
	case !ready || n.err != nil:
		return one(fail("the node does not respond: %v", n.err).advise("check its log and restart it"))
	case n.health.Status != "ok":
		return one(fail("the node reports %q", n.health.Status).advise("check its log and the database"))
	case n.health.Version != v.cfg.Version:
		return one(warn("the running node has version %q, this program %q", n.health.Version, v.cfg.Version).advise("restart the node"))
	}
	return one(ok("it runs, version %s", n.health.Version))
}

// api requests the API at its public URL.
func (v *visit) api(ctx context.Context) []Result {
	if v.cfg.BaseURL == "" {
		return one(skipped("POSTROOM_BASE_URL is not set"))
	}
	if n, ready := v.node.get(ctx); ready && n.absent {
		return one(skipped("no node is running here"))
	}
	said, until, err := v.health(ctx, strings.TrimSuffix(v.cfg.BaseURL, "/"))
	if _, invalid := errors.AsType[*tls.CertificateVerificationError](err); invalid {
		return one(fail("clients cannot trust %s: %v", v.cfg.BaseURL, err).advise("give the proxy a certificate for that name with its whole chain: %s", certificateFault(err)))
	}
	switch {
	case err != nil:
		return one(fail("clients cannot reach the API: %v", err).advise("check the proxy and POSTROOM_BASE_URL"))
	case said.Status != "ok":
		return one(fail("the API reports %q", said.Status).advise("check the log of the node"))
	case !until.IsZero():
		return one(v.lasts(until, "of "+v.cfg.BaseURL))
	}
	return one(ok("it responds"))
}

// certificateFault describes a certificate error in a few words.
func certificateFault(err error) string {
	_, host := errors.AsType[x509.HostnameError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	invalid, is := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case host:
		return "it is for another name"
	case unknown:
		return "it is signed by an unknown authority, or the chain is incomplete"
	case is && invalid.Reason == x509.Expired:
		return "it has expired"
	}
	return "it does not verify"
}
