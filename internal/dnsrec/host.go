package dnsrec

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
)

// HostResolver is the part of net.Resolver that CheckHost needs. Errors are as
// those of Resolver.
type HostResolver interface {
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupAddr(ctx context.Context, addr string) (names []string, err error)
}

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
func CheckHost(ctx context.Context, r HostResolver, name string) Host {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	h := Host{Name: name}
	addrs, err := r.LookupIPAddr(ctx, name+".")
	if err != nil || len(addrs) == 0 {
		h.Finding = finding(err, false)
		return h
	}
	addrs = addrs[:min(len(addrs), maxHostAddrs)]
	h.Addresses = make([]HostAddress, len(addrs))
	var wg sync.WaitGroup
	for i, a := range addrs {
		wg.Go(func() { h.Addresses[i] = lookBack(ctx, r, a.IP, name) })
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
func lookBack(ctx context.Context, r HostResolver, ip net.IP, host string) HostAddress {
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
		back, err := r.LookupIPAddr(ctx, strings.TrimSuffix(name, ".")+".")
		if slices.ContainsFunc(back, func(a net.IPAddr) bool { return a.IP.Equal(ip) }) {
			return HostAddress{Address: out.Address, PTR: strings.TrimSuffix(name, "."), Finding: Found}
		}
		if finding(err, false) == Unknown {
			out.Finding = Unknown
		}
	}
	return out
}
