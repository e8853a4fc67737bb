package mailauth

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// maxExplanation is the maximum length of an explanation in bytes.
const maxExplanation = 512

// uses reports whether s contains a macro with one of the letters.
func (s macroString) uses(letters string) bool {
	return slices.ContainsFunc(s, func(m macro) bool {
		return m.letter != 0 && strings.IndexByte(letters, m.letter) >= 0
	})
}

// expand expands a macro-string in the record of domain (RFC 7208 section 7).
func (c *spfCheck) expand(ctx context.Context, s macroString, domain string) string {
	var out strings.Builder
	for _, m := range s {
		if m.letter == 0 {
			out.WriteString(m.literal)
			continue
		}
		out.WriteString(m.transform(c.value(ctx, m.letter, domain)))
	}
	return out.String()
}

// value returns the value of a macro letter (RFC 7208 section 7.2).
func (c *spfCheck) value(ctx context.Context, letter byte, domain string) string {
	switch letter {
	case 's':
		return c.local + "@" + c.senderDomain
	case 'l':
		return c.local
	case 'o':
		return c.senderDomain
	case 'd':
		return domain
	case 'i':
		return dotted(c.ip)
	case 'p':
		return c.bestName(ctx, domain)
	case 'h':
		return c.helo
	case 'v':
		if c.ip.Is4() {
			return "in-addr"
		}
		return "ip6"
	case 'c':
		return c.ip.String()
	case 't':
		return strconv.FormatInt(c.now().Unix(), 10)
	default: // r, the name of the receiving host, which is not disclosed
		return "unknown"
	}
}

// dotted formats an IPv4 address as usual and an IPv6 address as dotted
// nibbles.
func dotted(ip netip.Addr) string {
	if ip.Is4() {
		return ip.String()
	}
	bytes := ip.As16()
	nibbles := make([]string, 0, 32)
	for _, b := range bytes {
		nibbles = append(nibbles, fmt.Sprintf("%x", b>>4), fmt.Sprintf("%x", b&15))
	}
	return strings.Join(nibbles, ".")
}

// bestName returns a validated name of the client: domain itself if possible,
// else a subdomain of it, else any.
func (c *spfCheck) bestName(ctx context.Context, domain string) string {
	names := c.validatedNames(ctx)
	if len(names) == 0 {
		return "unknown"
	}
	if slices.Contains(names, domain) {
		return domain
	}
	if i := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "."+domain) }); i >= 0 {
		return names[i]
	}
	return names[0]
}

// explain returns the explanation of the record that caused a fail, or "" if
// there is none (RFC 7208 section 6.2).
func (c *spfCheck) explain(ctx context.Context) string {
	if c.exp == nil {
		return ""
	}
	name, ok, err := c.target(ctx, *c.exp, c.expDomain)
	if !ok || err != nil {
		return ""
	}
	texts, err := lookupTXT(ctx, c.resolver, name)
	if err != nil || len(texts) != 1 || len(texts[0]) > maxExplanation {
		return ""
	}
	spec, err := parseExplanation(texts[0])
	if err != nil {
		return ""
	}
	text := c.expand(ctx, spec, c.expDomain)
	if len(text) > maxExplanation || strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > 0x7e }) >= 0 {
		return ""
	}
	return text
}
