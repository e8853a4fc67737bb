package dnsrec

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/dns"
)

// Host is what the DNS knows of the host that mail is sent from, which greets as
// Name (EHLO, RFC 5321 section 4.1.1.1). Many receivers take mail only from an
// address whose name leads back to it.
type Host struct {
	Name      string
	Addresses []HostAddress
	// Finding is Found when there is an address and all of them are, Missing when
	// one is, or there is none.
	Finding Finding
}

// HostAddress is an address of a host.
type HostAddress struct {
	Address string
	// PTR is the name that the address leads to, empty without one. One that leads
	// back is preferred, and among those the host's own.
	PTR string
	// Finding is Found when PTR leads back to the address.
	Finding Finding
}

const (
	maxHostAddrs = 8 // of one host that are looked at
	maxPTR       = 4 // names of one address that are
)

// CheckHost looks up the addresses of name, their names, and whether these lead
// back. It takes at most Timeout.
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

// lookBack follows an address to its names and from there back.
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
