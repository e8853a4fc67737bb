package netguard

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/postroom/postroom/internal/dns"
)

// lookupTimeout is how long a name may take to resolve when a URL is given.
const lookupTimeout = 5 * time.Second

// Targets says which URLs we may post to: https ones, on any port of an address
// that the guard lets through. In the ranges that the operator allows plain http
// is open too.
type Targets struct {
	guard    *Guard
	resolver dns.Resolver
}

// NewTargets returns targets for a guard that has no list of ports. resolver may
// be nil for the system's.
func NewTargets(g *Guard, resolver dns.Resolver) *Targets {
	if resolver == nil {
		resolver = net.DefaultResolver
	}
	return &Targets{g, resolver}
}

// Check returns an error if nothing may be posted to a URL. The error is
// ErrRefused, and its text tells the user why. A name that does not resolve
// passes, because Control checks the address of every connection.
func (t *Targets) Check(ctx context.Context, raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return refused("is not a URL")
	}
	host, err := hostOf(u)
	if err != nil {
		return err
	}
	addrs := t.addrs(ctx, host)
	if len(addrs) == 0 {
		if u.Scheme != "https" && len(t.guard.allow) == 0 { // no address could make it right
			return refused("must begin with https://")
		}
		return nil
	}
	for _, addr := range addrs {
		if err = t.checkAddr(u.Scheme, addr); err == nil {
			return nil
		}
	}
	return err
}

// Control returns a net.Dialer.Control for connections of URLs with this scheme.
// The dialer's error is then ErrRefused, for errors.Is.
func (t *Targets) Control(scheme string) func(network, address string, _ syscall.RawConn) error {
	return func(network, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil || !strings.HasPrefix(network, "tcp") {
			return refused("%s %s", network, address)
		}
		return t.checkAddr(scheme, ap.Addr())
	}
}

func (t *Targets) checkAddr(scheme string, addr netip.Addr) error {
	switch {
	case t.guard.allowed(PlainIP(addr)):
		return nil
	case t.guard.Check(addr) != nil:
		return refused("must be at a public address")
	case scheme != "https":
		return refused("must begin with https://")
	}
	return nil
}

// addrs returns the addresses of a host, or none when it does not resolve.
func (t *Targets) addrs(ctx context.Context, host string) []netip.Addr {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") { // RFC 6761 section 6.3
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addrs, err := t.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	return addrs
}

// hostOf returns the host of a URL, in lower case and without a last dot. The URL
// must be written in the one way that all programs read alike.
func hostOf(u *url.URL) (string, error) {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "":
		return "", refused("must begin with https://")
	case u.User != nil:
		return "", refused("must not hold a user name or password")
	case u.Fragment != "":
		return "", refused("must not have a fragment")
	case strings.HasPrefix(u.Host, "["):
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", refused("has no IPv6 address between the brackets")
		}
	case !isHost(host):
		return "", refused("has no host name or address that is written as usual")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", refused("has no port from 1 to 65535")
		}
	}
	return host, nil
}

// isHost reports whether s is an IPv4 address of four decimal numbers, or a name
// that no program reads as another form of an address.
func isHost(s string) bool {
	if addr, err := netip.ParseAddr(s); err == nil {
		return addr.Is4()
	}
	if s == "" || len(s) > 253 {
		return false
	}
	labels := strings.Split(s, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || l[0] == '-' || l[len(l)-1] == '-' || strings.Trim(l, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	return last[0] < '0' || last[0] > '9' // no top-level domain begins with a digit
}

func refused(format string, args ...any) error { return &targetError{fmt.Sprintf(format, args...)} }

// targetError is ErrRefused with a text for the user.
type targetError struct{ why string }

func (e *targetError) Error() string { return e.why }
func (e *targetError) Unwrap() error { return ErrRefused }
