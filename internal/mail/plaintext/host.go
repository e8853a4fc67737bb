package plaintext

import (
	"net/url"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// HostIn returns the host of a text that looks like a web address.
func HostIn(text string) string {
	text = strings.ToLower(strings.TrimSpace(text))
	if strings.ContainsAny(text, " \t\r\n") || !strings.Contains(text, ".") || strings.Contains(text, "@") {
		return ""
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	host := ASCIIHost(u.Hostname())
	if _, known := publicsuffix.PublicSuffix(host); !known && !strings.HasPrefix(text, "http") {
		return "" // report.pdf
	}
	return host
}

// Site returns the domain of one owner: the name below a public suffix.
func Site(host string) string {
	if strings.Count(host, ".") < 2 { // it has no more than a suffix and one label
		return host
	}
	if s, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return s
	}
	return host
}

// maxHost is the longest form, in bytes, of a name that fits into the DNS: 253
// characters of four bytes each. The encoding of longer names takes quadratic
// time.
const maxHost = 4 * 253

// ASCIIHost returns the ASCII form of a host name, which reveals letters that only look like
// others.
func ASCIIHost(host string) string {
	if strings.Contains(host, ":") { // IPv6
		return host
	}
	if len(host) > maxHost {
		return ""
	}
	ascii, err := idna.Lookup.ToASCII(strings.ToLower(host))
	if err != nil {
		return ""
	}
	return ascii
}
