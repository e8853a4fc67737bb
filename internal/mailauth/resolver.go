package mailauth

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"

	"github.com/postroom/postroom/internal/dns"
)

// lookupTXT returns the TXT records of domain, none when there is no such name.
func lookupTXT(ctx context.Context, r dns.Resolver, domain string) ([]string, error) {
	records, err := r.LookupTXT(ctx, domain+".")
	if dns.IsNotFound(err) {
		return nil, nil
	}
	return records, err
}

// lookupIP returns the addresses of host of one family, none when there is no
// such name.
func lookupIP(ctx context.Context, r dns.Resolver, network, host string) ([]netip.Addr, error) {
	addrs, err := r.LookupNetIP(ctx, network, host+".")
	if dns.IsNotFound(err) {
		return nil, nil
	}
	return addrs, err
}

// lookupMX returns the MX hosts of domain, none when there is no such name.
// net.Resolver returns the usable ones beside an error about the others.
func lookupMX(ctx context.Context, r dns.Resolver, domain string) ([]*net.MX, error) {
	records, err := r.LookupMX(ctx, domain+".")
	if len(records) > 0 || dns.IsNotFound(err) {
		return records, nil
	}
	return nil, err
}

// maxWritten is the longest form, in bytes, of a name that fits into the DNS: 253
// characters of four bytes each. The encoding of longer names takes quadratic
// time.
const maxWritten = 4 * 253

// asciiDomain returns the form of a domain that the DNS knows, in lower case and
// without the dot at its end; false when it has none. A name of one label is
// returned too.
func asciiDomain(domain string) (string, bool) {
	domain = strings.TrimSuffix(domain, ".")
	if len(domain) > maxWritten {
		return "", false
	}
	if !isASCII(domain) {
		ascii, err := idna.Lookup.ToASCII(domain)
		if err != nil {
			return "", false
		}
		domain = ascii
	}
	return strings.ToLower(domain), isQueryable(domain)
}

// isQueryable reports whether a question to the DNS can be made of a name (RFC
// 1035 section 2.3.4): labels of 1 to 63 bytes, 253 in all.
func isQueryable(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
	}
	return true
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
