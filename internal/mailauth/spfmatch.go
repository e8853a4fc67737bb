package mailauth

import (
	"context"
	"net/netip"
	"slices"
	"strings"
)

// match reports whether a mechanism of the record of domain matches (RFC 7208
// section 5).
func (c *spfCheck) match(ctx context.Context, m mechanism, domain string) (bool, error) {
	switch m.name {
	case "all":
		return true, nil
	case "ip4", "ip6":
		return m.network.Contains(c.ip), nil
	}
	if err := c.spend(m.name); err != nil {
		return false, err
	}
	target, ok := domain, true
	if m.domain != nil {
		var err error
		if target, ok, err = c.target(ctx, *m.domain, domain); err != nil {
			return false, err
		}
	}
	switch {
	case m.name == "include":
		if !ok {
			return false, permError("%s includes a name that is not a domain", domain)
		}
		return c.matchInclude(ctx, target)
	case !ok:
		return false, nil // an invalid name does not exist
	}
	switch m.name {
	case "a":
		return c.matchA(ctx, m, target)
	case "mx":
		return c.matchMX(ctx, m, target)
	case "ptr":
		return c.matchPTR(ctx, target)
	default:
		return c.matchExists(ctx, target)
	}
}

// target expands a domain-spec. ok is false if the name is not a valid DNS
// name, or if it uses a non-ASCII local part (RFC 8616 section 4).
func (c *spfCheck) target(ctx context.Context, spec macroString, domain string) (name string, ok bool, err error) {
	if !isASCII(c.local) && spec.uses("sl") {
		return "", false, nil
	}
	name = strings.ToLower(c.expand(ctx, spec, domain))
	name = strings.TrimSuffix(name, ".")
	for len(name) > 253 { // remove labels from the left (RFC 7208 section 7.3)
		_, rest, found := strings.Cut(name, ".")
		if !found {
			return "", false, nil
		}
		name = rest
	}
	return name, isQueryable(name) && isASCII(name), nil
}

// matchInclude evaluates the record of another domain. Only a pass matches (RFC
// 7208 section 5.2).
func (c *spfCheck) matchInclude(ctx context.Context, target string) (bool, error) {
	exp, expDomain := c.exp, c.expDomain
	result, err := c.follow(ctx, target)
	c.exp, c.expDomain = exp, expDomain // ignore the explanation of an included record
	if err == nil && result == None {
		err = permError("include of %s, which has no SPF record", target)
	}
	return result == Pass, err
}

func (c *spfCheck) matchA(ctx context.Context, m mechanism, target string) (bool, error) {
	addrs, err := lookupIP(ctx, c.resolver, c.network(), target)
	if err != nil {
		return false, tempError(target)
	}
	if err := c.void(len(addrs)); err != nil {
		return false, err
	}
	return c.contains(m, addrs), nil
}

func (c *spfCheck) matchMX(ctx context.Context, m mechanism, target string) (bool, error) {
	records, err := lookupMX(ctx, c.resolver, target)
	if err != nil {
		return false, tempError(target)
	}
	if err := c.void(len(records)); err != nil {
		return false, err
	}
	if len(records) > maxSPFNames {
		return false, permError("%s has more than %d MX records", target, maxSPFNames)
	}
	for _, mx := range records {
		host := strings.ToLower(strings.TrimSuffix(mx.Host, "."))
		if !isQueryable(host) {
			continue
		}
		matched, err := c.matchA(ctx, m, host)
		if matched || err != nil {
			return matched, err
		}
	}
	return false, nil
}

// matchExists looks up an IPv4 address, also for an IPv6 client (RFC 7208
// section 5.7).
func (c *spfCheck) matchExists(ctx context.Context, target string) (bool, error) {
	addrs, err := lookupIP(ctx, c.resolver, "ip4", target)
	if err != nil {
		return false, tempError(target)
	}
	return len(addrs) > 0, c.void(len(addrs))
}

// matchPTR looks for a validated name of the client in target (RFC 7208 section
// 5.5).
func (c *spfCheck) matchPTR(ctx context.Context, target string) (bool, error) {
	return slices.ContainsFunc(c.validatedNames(ctx), func(name string) bool {
		return name == target || strings.HasSuffix(name, "."+target)
	}), nil
}

// validatedNames returns the PTR names of the client that resolve to its
// address. It skips a name whose lookup fails.
func (c *spfCheck) validatedNames(ctx context.Context) []string {
	if c.named {
		return c.names
	}
	c.named = true
	// net.Resolver returns valid names together with an error about invalid
	// ones.
	found, _ := c.resolver.LookupAddr(ctx, c.ip.String())
	for i, name := range found {
		if i == maxSPFNames {
			break
		}
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if !isQueryable(name) {
			continue
		}
		addrs, err := lookupIP(ctx, c.resolver, c.network(), name)
		if err == nil && slices.ContainsFunc(addrs, func(a netip.Addr) bool { return a.Unmap() == c.ip }) {
			c.names = append(c.names, name)
		}
	}
	return c.names
}

// network returns the address family of the client for LookupNetIP.
func (c *spfCheck) network() string {
	if c.ip.Is4() {
		return "ip4"
	}
	return "ip6"
}

// contains reports whether the client's address is in the network of one of
// addrs.
func (c *spfCheck) contains(m mechanism, addrs []netip.Addr) bool {
	bits := m.bits6
	if c.ip.Is4() {
		bits = m.bits4
	}
	return slices.ContainsFunc(addrs, func(a netip.Addr) bool {
		p, err := a.Unmap().Prefix(bits)
		return err == nil && p.Contains(c.ip)
	})
}
