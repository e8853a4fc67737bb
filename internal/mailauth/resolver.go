package mailauth

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"

	"github.com/postroom/postroom/internal/dns"
)

// lookupTXT returns the TXT records of domain, or none if the name does not
// exist.
func lookupTXT(ctx context.Context, r dns.Resolver, domain string) ([]string, error) {
	records, err := r.LookupTXT(ctx, domain+".")
	if dns.IsNotFound(err) {
		return nil, nil
	}
	return records, err
}

// lookupIP returns the addresses of host in one family, or none if the name
// does not exist.
func lookupIP(ctx context.Context, r dns.Resolver, network, host string) ([]netip.Addr, error) {
	addrs, err := r.LookupNetIP(ctx, network, host+".")
	if dns.IsNotFound(err) {
		return nil, nil
	}
	return addrs, err
}

// lookupMX returns the MX hosts of domain, or none if the name does not exist.
// net.Resolver returns valid records together with an error about invalid ones.
func lookupMX(ctx context.Context, r dns.Resolver, domain string) ([]*net.MX, error) {
	records, err := r.LookupMX(ctx, domain+".")
	if len(records) > 0 || dns.IsNotFound(err) {
		return records, nil
	}
	return nil, err
}

// maxWritten is the maximum length, in bytes, of a name that fits into the DNS:
// 253 characters of four bytes each. Encoding a longer name takes quadratic
// time.
const maxWritten = 4 * 253

// asciiDomain returns domain as A-labels, in lower case and without a final
// dot. It returns false if domain is not a valid DNS name. A name of one label
// is valid.
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

// isQueryable reports whether name is a valid DNS name: labels of 1 to 63
// bytes, 253 in all (RFC 1035 section 2.3.4).
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
