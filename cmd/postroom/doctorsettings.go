package main

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/postroom/postroom/internal/doctor"
)

// unfits collects settings that conflict with each other or with the environment.
type unfits []doctor.Result

func (u *unfits) add(s doctor.Status, setting, saw, do string) {
	*u = append(*u, doctor.Result{Status: s, Subject: envPrefix + setting, Saw: envPrefix + setting + saw, Do: []string{do}})
}

// unfit finds settings that are valid on their own but conflict. A test
// installation with a local domain has few requirements.
func (c Config) unfit() []doctor.Result {
	var u unfits
	c.unfitWeb(&u, c.isPublic())
	c.unfitMail(&u, c.isPublic())
	c.unfitSafety(&u)
	if len(u) == 0 {
		return []doctor.Result{{Status: doctor.OK, Saw: "no conflicts"}}
	}
	return u
}

func (c Config) isPublic() bool { return !doctor.IsLocal(string(c.MailDomain)) }

// unfitWeb checks how clients reach the API.
func (c Config) unfitWeb(u *unfits, public bool) {
	said := c.publicURL()
	base, err := url.Parse(said)
	switch {
	case !public:
	case said == "":
		u.add(doctor.Warn, "BASE_URL", " is not set: download, unsubscribe and tracking links start with an address that other hosts cannot reach",
			"set it to the public URL of the API, such as https://"+string(c.Hostname))
	case err == nil && base.Scheme == "http" && !isThisMachine(base.Hostname()):
		u.add(doctor.Warn, "BASE_URL", " is plain HTTP: keys and mail are not encrypted, and one-click unsubscribe does not work (RFC 8058)",
			"set POSTROOM_HTTPS, or put a proxy that speaks HTTPS before the API, and set it to an https:// address")
	case isThisMachine(base.Hostname()):
		u.add(doctor.Warn, "BASE_URL", " is "+said+", which other hosts cannot reach", "set it to the public URL of the API")
	}
	if listensOnAll(string(c.HTTP)) && c.HTTPS == "" && err == nil && base.Scheme != "https" {
		u.add(doctor.Warn, "HTTP", " is "+string(c.HTTP)+": the API accepts unencrypted keys from any host",
			"set POSTROOM_HTTPS, or listen on 127.0.0.1 behind a proxy with HTTPS")
	}
	if err == nil && base.Scheme == "https" && c.HTTPS == "" && len(c.TrustedProxies) == 0 {
		u.add(doctor.Warn, "TRUSTED_PROXIES", " is not set: all clients appear as the proxy and share one limit on invalid keys",
			"set it to the address of the proxy, such as 127.0.0.1")
	}
	for _, p := range c.TrustedProxies {
		if p.Bits() == 0 {
			u.add(doctor.Fail, "TRUSTED_PROXIES", " has "+p.String()+": any client can forge its address with X-Forwarded-For", "list only the proxies")
		}
	}
}

// unfitMail checks inbound and outbound mail.
func (c Config) unfitMail(u *unfits, public bool) {
	if !public {
		return
	}
	if host, _, err := net.SplitHostPort(string(c.SMTP)); err == nil && isThisMachine(host) {
		u.add(doctor.Warn, "SMTP", " is "+string(c.SMTP)+", where other servers cannot connect", "set it to :25, or forward port 25 to it")
	}
	if c.MXPort != 25 {
		u.add(doctor.Warn, "MX_PORT", fmt.Sprintf(" is %d, but mail servers listen on 25", c.MXPort), "use 25, unless this is a test")
	}
	if relay := string(c.Relay); relay != "" {
		if r, err := url.Parse(relay); err == nil && r.User != nil && r.Query().Get("tls") == "off" && !isThisMachine(r.Hostname()) {
			u.add(doctor.Warn, "RELAY", " has tls=off: its password is not encrypted", "use tls=verify")
		}
	}
}

// unfitSafety checks settings that affect security.
func (c Config) unfitSafety(u *unfits) {
	if c.RateLimits.off {
		u.add(doctor.Warn, "RATE_LIMITS", " is off: clients can guess keys without a limit", "turn it on, unless this is a benchmark")
	}
	if listensOnAll(string(c.Metrics)) {
		u.add(doctor.Warn, "METRICS", " is "+string(c.Metrics)+": anyone can read the metrics", "listen on an address that only Prometheus can reach")
	}
	for _, file := range []struct{ setting, path string }{{"SECRET", filepath.Join(c.Data, secretFile)}, {"TLS_KEY", c.TLSKey}} {
		if info, err := os.Stat(file.path); err == nil && info.Mode().Perm()&0o007 != 0 {
			u.add(doctor.Warn, file.setting, ": all users of this machine can read "+file.path, "chmod 600 "+file.path)
		}
	}
	if c.Database.postgres() && !c.Blobs.bucket() && c.Secret != "" { // typical for several nodes
		u.add(doctor.Warn, "BLOBS", " is a folder: several nodes must share it",
			"with several nodes, share the folder or use a bucket; with one node, ignore this")
	}
}

// isThisMachine reports whether host is a loopback name or address.
func isThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.IsLoopback()
}

// listensOnAll reports whether a listen address covers all interfaces.
func listensOnAll(at string) bool {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "" || err == nil && addr.IsUnspecified()
}
