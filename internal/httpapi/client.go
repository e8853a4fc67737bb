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
	at, _ := parseAddr(r.RemoteAddr)
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		if !slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(at) }) {
			break
		}
		before, ok := parseAddr(hop)
		if !ok {
			break // unreadable: the rest cannot be trusted
		}
		at = before
	}
	return at
}

// parseAddr reads an address, which may have a port.
func parseAddr(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if ip, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil {
		return netguard.PlainIP(ip), true
	}
	ap, err := netip.ParseAddrPort(s)
	return netguard.PlainIP(ap.Addr()), err == nil
}
