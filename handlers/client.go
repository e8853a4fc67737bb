package handlers

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientIP is the address that a request comes from: the peer's, unless the peer
// is one of the trusted proxies. Then it is the last address in X-Forwarded-For
// that no trusted proxy has: what stands before it was written by somebody whom
// nobody has to believe. Other headers of the kind are never read.
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
				return at // nobody knows what the proxy before saw
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
		return plain(ip), true
	}
	ap, err := netip.ParseAddrPort(s)
	return plain(ap.Addr()), err == nil
}

func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return plain(ap.Addr())
}

// plain is an address as it is compared: IPv4 as such, and without the zone of
// the interface that it was seen on.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// ClientNetwork is who an address belongs to: an IPv6 network of 64 bits is one
// client.
func ClientNetwork(ip netip.Addr) string {
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
