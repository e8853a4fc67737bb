package mailauth

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

// Resolver is the part of net.Resolver that verdicts need. Names end with a
// dot. An error is a *net.DNSError with IsNotFound when the name, or the type
// of record there, does not exist; any other error is trouble of the DNS that
// may pass.
type Resolver interface {
	// LookupTXT returns the strings of each record joined without a space.
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	// LookupNetIP returns the addresses of one family: network is "ip4" or "ip6".
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
	// LookupAddr returns the names that an address has in the reverse tree.
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// isNotFound reports whether the DNS has answered that there is no such name or
// record.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}

// lookupTXT returns the TXT records of domain, none when there is no such name.
func lookupTXT(ctx context.Context, r Resolver, domain string) ([]string, error) {
	records, err := r.LookupTXT(ctx, domain+".")
	if isNotFound(err) {
		return nil, nil
	}
	return records, err
}

// lookupIP returns the addresses of host of one family, none when there is no
// such name.
func lookupIP(ctx context.Context, r Resolver, network, host string) ([]netip.Addr, error) {
	addrs, err := r.LookupNetIP(ctx, network, host+".")
	if isNotFound(err) {
		return nil, nil
	}
	return addrs, err
}

// lookupMX returns the MX hosts of domain, none when there is no such name.
// net.Resolver returns the usable ones beside an error about the others.
func lookupMX(ctx context.Context, r Resolver, domain string) ([]*net.MX, error) {
	records, err := r.LookupMX(ctx, domain+".")
	if len(records) > 0 || isNotFound(err) {
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
