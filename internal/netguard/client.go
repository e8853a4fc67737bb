package netguard

import "net/netip"

// ClientNetwork returns the network that counts as one client of a server: an IPv4
// address, or the /64 of an IPv6 address, because one client usually has all of it. It is
// not valid if ip is not.
func ClientNetwork(ip netip.Addr) netip.Prefix {
	ip = PlainIP(ip)
	p, err := ip.Prefix(min(ip.BitLen(), 64))
	if err != nil {
		return netip.Prefix{}
	}
	return p
}
