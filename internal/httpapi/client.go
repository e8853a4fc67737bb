package httpapi

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/netguard"
)

// ClientIP returns the address that a request comes from. That is the address of
// the connection, unless it belongs to a trusted proxy. Then it is the last address
// in X-Forwarded-For that is not a trusted proxy's; clients can forge the ones
// before it. ClientIP reads no other header.
func ClientIP(r *http.Request, trusted []netip.Prefix) netip.Addr {
	at := peer(r)
	if !anyContains(trusted, at) {
		return at
	}
	lines := r.Header.Values("X-Forwarded-For")
	for _, line := range slices.Backward(lines) {
		for line != "" {
			comma := strings.LastIndexByte(line, ',')
			hop, ok := forwardedAddr(line[comma+1:])
			if !ok {
				return at // unreadable: the rest cannot be trusted
			}
			if at = hop; !anyContains(trusted, at) {
				return at
			}
			line = line[:max(comma, 0)]
		}
	}
	return at
}

func anyContains(prefixes []netip.Prefix, ip netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// forwardedAddr reads one address of X-Forwarded-For, which may have a port.
func forwardedAddr(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil {
		return netguard.PlainIP(ip), true
	}
	ap, err := netip.ParseAddrPort(s)
	return netguard.PlainIP(ap.Addr()), err == nil
}

func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return netguard.PlainIP(ap.Addr())
}
