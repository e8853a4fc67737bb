package dnsrec

import (
	"errors"
	"regexp"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// maxName is the maximum length of a domain. It leaves room, in the 253
// characters of a DNS name, for the longest prefix that a record adds.
const maxName = 253 - len("12345678901234567890._domainkey.")

// label matches a label of RFC 1123: letters, digits and inner hyphens.
var label = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// CheckName returns a domain in lower case, as A-labels (RFC 5890) and without
// the final dot. Its error completes a sentence that begins with a field name:
// "is not a domain name".
func CheckName(name string) (string, error) {
	errName := errors.New("is not a domain name, such as mail.example.com")
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(name, "."))
	if err != nil {
		return "", errName
	}
	ascii = strings.ToLower(ascii)
	labels := strings.Split(ascii, ".")
	for _, l := range labels {
		if !label.MatchString(l) {
			return "", errName
		}
	}
	if last := labels[len(labels)-1]; len(labels) < 2 || strings.Trim(last, "0123456789") == "" { // the last label of an IP address
		return "", errName
	}
	if suffix, _ := publicsuffix.PublicSuffix(ascii); suffix == ascii {
		return "", errors.New("is a suffix that many register names under")
	}
	if len(ascii) > maxName {
		return "", errors.New("is too long to put the names of records before it")
	}
	return ascii, nil
}
