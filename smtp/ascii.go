package smtp

import (
	"strings"

	"golang.org/x/net/idna"
)

// ASCIIDomain returns the A-label form of a domain, as DNS uses it.
func ASCIIDomain(domain string) (string, error) {
	if IsASCII(domain) {
		return strings.ToLower(domain), nil
	}
	return idna.Lookup.ToASCII(domain)
}

func IsASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 127 }) < 0
}
