package outbound

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
)

// Relay is a smarthost: a server that delivers all our outbound messages.
type Relay struct{ At Endpoint }

// ParseRelay parses smtp://user:password@host:port, or smtps:// for implicit TLS.
// The default port is 587, or 465 for smtps. User and password are
// percent-encoded and may both be missing.
//
// The parameter tls sets the protection of the connection:
//
//   - verify: TLS with a valid certificate for the host. This is the default for
//     smtps, and for smtp with a user unless the host is this machine.
//   - insecure: TLS with any certificate.
//   - maybe: TLS if the server offers it and it works. This is the default
//     otherwise. The password is sent only over TLS or to loopback.
//   - off: no TLS. The password is sent nevertheless.
func ParseRelay(s string) (*Relay, error) {
	u, err := url.Parse(s)
	if err != nil {
		// The error of url.Parse would contain the password.
		return nil, errors.New("relay is not an address such as smtp://user:password@host:port")
	}
	e := Endpoint{Host: u.Hostname(), Trusted: true}
	switch u.Scheme {
	case "smtp":
		e.Port = 587
	case "smtps":
		e.Port, e.implicit = 465, true
	default:
		return nil, errors.New("relay must begin with smtp:// or smtps://")
	}
	if e.Host == "" || u.Path != "" && u.Path != "/" {
		return nil, errors.New("relay is not an address such as smtp://user:password@host:port")
	}
	if u.Port() != "" {
		n, err := strconv.ParseUint(u.Port(), 10, 16)
		if err != nil || n == 0 {
			return nil, fmt.Errorf("relay: %q is not a port", u.Port())
		}
		e.Port = uint16(n)
	}
	if u.User != nil {
		e.user = u.User.Username()
		e.password, _ = u.User.Password()
	}
	return readRelayTLS(e, u.Query())
}

func readRelayTLS(e Endpoint, params url.Values) (*Relay, error) {
	mode := params.Get("tls")
	for name := range params {
		if name != "tls" {
			return nil, fmt.Errorf("relay: unknown parameter %q", name)
		}
	}
	if mode == "" && (e.implicit || e.user != "" && !isLoopback(e.Host)) {
		mode = "verify"
	}
	switch mode {
	case "verify":
		e.TLS = TLSVerified
	case "insecure":
		e.TLS = tlsAnyone
	case "maybe", "":
		e.TLS = TLSMaybe
	case "off":
		e.TLS, e.clearAuth = tlsNever, true
	default:
		return nil, fmt.Errorf("relay: tls is verify, insecure, maybe or off, not %q", mode)
	}
	if e.implicit && (e.TLS == TLSMaybe || e.TLS == tlsNever) {
		return nil, fmt.Errorf("relay: smtps cannot have tls=%s", mode)
	}
	return &Relay{e}, nil
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Loopback reports whether the relay is on this machine.
func (r *Relay) Loopback() bool { return isLoopback(r.At.Host) }

// String returns the relay's URL without the password.
func (r *Relay) String() string {
	scheme := "smtp"
	if r.At.implicit {
		scheme = "smtps"
	}
	u := url.URL{Scheme: scheme, Host: r.At.String()}
	if r.At.user != "" {
		u.User = url.UserPassword(r.At.user, "xxxxx")
	}
	return u.String()
}
