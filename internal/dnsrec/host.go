package dnsrec

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/dns"
)

// Host is the DNS state of the sending host, whose EHLO name is Name (RFC 5321
// section 4.1.1.1). Many servers accept mail only from an address whose PTR
// name resolves back to it.
type Host struct {
	Name      string
	Addresses []HostAddress
	// Finding is Found if the host has an address and all of its addresses are
	// Found. It is Missing if one is Missing or there is none.
	Finding Finding
}

// HostAddress is an address of a host.
type HostAddress struct {
	Address string
	// PTR is a name of the address, or empty. Names that resolve back to the
	// address are preferred, and among them Name.
	PTR string
	// Finding is Found if PTR resolves back to the address.
	Finding Finding
}

const (
	maxHostAddrs = 8 // maximum number of addresses checked per host
	maxPTR       = 4 // maximum number of names checked per address
)

// CheckHost looks up the addresses of name, their PTR names, and the addresses
// of those. It takes at most Timeout.
func CheckHost(ctx context.Context, r dns.Resolver, name string) Host {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	h := Host{Name: name}
	addrs, err := r.LookupNetIP(ctx, "ip", name+".")
	if err != nil || len(addrs) == 0 {
		h.Finding = finding(err, false)
		return h
	}
	addrs = addrs[:min(len(addrs), maxHostAddrs)]
	h.Addresses = make([]HostAddress, len(addrs))
	var wg sync.WaitGroup
	for i, a := range addrs {
		wg.Go(func() { h.Addresses[i] = lookBack(ctx, r, a.Unmap(), name) })
	}
	wg.Wait()
	h.Finding = Found
	for _, a := range h.Addresses {
		if a.Finding == Missing || a.Finding == Unknown && h.Finding == Found {
			h.Finding = a.Finding
		}
	}
	return h
}

// lookBack looks up the PTR names of an address and their addresses.
func lookBack(ctx context.Context, r dns.Resolver, ip netip.Addr, host string) HostAddress {
	out := HostAddress{Address: ip.String()}
	names, err := r.LookupAddr(ctx, ip.String())
	if len(names) == 0 {
		out.Finding = finding(err, false)
		return out
	}
	own := func(name string) int {
		if strings.EqualFold(strings.TrimSuffix(name, "."), host) {
			return 0
		}
		return 1
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b string) int { return own(a) - own(b) })
	out.PTR, out.Finding = strings.TrimSuffix(names[0], "."), Missing
	for _, name := range names[:min(len(names), maxPTR)] {
		back, err := r.LookupNetIP(ctx, "ip", strings.TrimSuffix(name, ".")+".")
		if slices.ContainsFunc(back, func(a netip.Addr) bool { return a.Unmap() == ip }) {
			return HostAddress{Address: out.Address, PTR: strings.TrimSuffix(name, "."), Finding: Found}
		}
		if finding(err, false) == Unknown {
			out.Finding = Unknown
		}
	}
	return out
}
