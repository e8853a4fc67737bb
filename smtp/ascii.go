package smtp

import (
	"errors"
	"strings"

	"golang.org/x/net/idna"
)

// ASCIIDomain returns the A-label form of a domain, as DNS uses it, or an error if the
// domain is not valid or too long.
func ASCIIDomain(domain string) (string, error) {
	if IsASCII(domain) {
		return strings.ToLower(domain), nil
	}
	if len(domain) > maxUnicodeDomain {
		return "", errors.New("the domain is too long")
	}
	return idna.Lookup.ToASCII(domain)
}

func IsASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 127 }) < 0
}
