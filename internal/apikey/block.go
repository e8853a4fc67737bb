package apikey

import "net/netip"

// ParseBlock parses one block of addresses from which a key may be used, such as 192.0.2.0/24
// or 2001:db8::/32. A block of IPv4-mapped IPv6 addresses becomes the block of those IPv4
// addresses, because callers are compared by them.
func ParseBlock(s string) (block netip.Prefix, ok bool) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, false
	}
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked(), true
}
