// Package netguard says which addresses an outgoing connection may reach. Names
// that strangers choose (a domain's MX hosts, a webhook's URL) can point at the
// machines behind our own firewall, and nothing that is sent there for a
// stranger may arrive.
//
// Refused are all addresses that are not public (loopback, private, link-local,
// shared, multicast, documentation, the translated forms of IPv4 in IPv6) and
// the addresses of this machine itself. Ranges that the operator allows are
// open. The check is made on the address that is really dialled, in
// net.Dialer.Control, so that a name that resolves differently the second time
// gains nothing.
package netguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"code.dny.dev/ssrf"
)

// ErrRefused means that an address may not be reached.
var ErrRefused = errors.New("address may not be reached")

// alsoDenied are public addresses that a cloud reserves for its own services.
var alsoDenied = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host agent and DNS
}

// Config says what a guard lets through. The zero value refuses all but public
// addresses.
type Config struct {
	// Allow are ranges that may be reached although they are not public, or
	// although they are Own.
	Allow []netip.Prefix
	// Own are the addresses of this machine; see InterfaceAddrs.
	Own []netip.Addr
	// Ports are the only ports that may be reached; none means any.
	Ports []uint16
}

// Guard checks addresses. It is safe for use by many goroutines.
type Guard struct {
	public *ssrf.Guardian
	allow  []netip.Prefix
	own    map[netip.Addr]struct{}
}

// New returns a guard for cfg.
func New(cfg Config) *Guard {
	g := &Guard{own: map[netip.Addr]struct{}{}}
	for _, p := range cfg.Allow {
		g.allow = append(g.allow, unmapPrefix(p))
	}
	for _, a := range cfg.Own {
		g.own[PlainIP(a)] = struct{}{}
	}
	ports := ssrf.WithAnyPort()
	if len(cfg.Ports) > 0 {
		ports = ssrf.WithPorts(cfg.Ports...)
	}
	g.public = ssrf.New(ports, ssrf.WithDeniedV4Prefixes(alsoDenied...),
		ssrf.WithAllowedV4Prefixes(g.allow...), ssrf.WithAllowedV6Prefixes(g.allow...))
	return g
}

// Check returns ErrRefused if nothing may be sent to addr. It does not check the
// port.
func (g *Guard) Check(addr netip.Addr) error {
	addr = PlainIP(addr)
	if _, own := g.own[addr]; own && !g.allowed(addr) {
		return fmt.Errorf("%s is this machine: %w", addr, ErrRefused)
	}
	if err := g.public.SafeAddr(addr); err != nil {
		return fmt.Errorf("%s is not public: %w", addr, ErrRefused)
	}
	return nil
}

// Control is a net.Dialer.Control that refuses to connect where Check or the
// list of ports does. The dialer's error is then ErrRefused, for errors.Is.
func (g *Guard) Control(network, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%s: %w", address, ErrRefused)
	}
	if err := g.Check(ap.Addr()); err != nil {
		return err
	}
	// What is left to find is a port or a network that is not TCP.
	addr := netip.AddrPortFrom(PlainIP(ap.Addr()), ap.Port())
	if err := g.public.Safe(network, addr.String(), nil); err != nil {
		return fmt.Errorf("%s %s: %w", network, address, ErrRefused)
	}
	return nil
}

func (g *Guard) allowed(addr netip.Addr) bool {
	for _, p := range g.allow {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// PlainIP writes an IPv4 address that is mapped into IPv6 as what the kernel
// makes of it, and drops the zone, which no range has.
func PlainIP(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

func unmapPrefix(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// InterfaceAddrs returns the addresses of this machine's network interfaces. A
// public address that is translated to this machine by a router is not among
// them.
func InterfaceAddrs() ([]netip.Addr, error) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("addresses of this machine: %w", err)
	}
	var addrs []netip.Addr
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(n.IP); ok {
				addrs = append(addrs, PlainIP(addr))
			}
		}
	}
	return addrs, nil
}
