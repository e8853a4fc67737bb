// Package dns names the DNS lookups that the other packages need.
package dns

import (
	"context"
	"errors"
	"net"
	"net/netip"
)

// Resolver looks names up in the DNS. *net.Resolver implements it. Names that end
// with a dot are absolute.
//
// A lookup returns a *net.DNSError with IsNotFound when the name, or the type of
// record there, does not exist. Any other error may be temporary.
type Resolver interface {
	// LookupTXT returns the strings of each record joined without a space.
	LookupTXT(ctx context.Context, name string) ([]string, error)
	// LookupMX returns the usable hosts, with an error if others are not usable.
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	// LookupNetIP returns addresses. network is "ip", "ip4" or "ip6". IPv4 addresses
	// may have the IPv6 form; see netip.Addr.Unmap.
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	// LookupAddr returns the names that an address has in the reverse tree.
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// IsNotFound reports whether the DNS replied that the name or record does not
// exist.
func IsNotFound(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}
