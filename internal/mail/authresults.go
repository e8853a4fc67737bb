package mail

import (
	"strings"

	"golang.org/x/net/idna"
)

// AuthResult holds the SPF, DKIM and DMARC results of a received message, in
// the words of RFC 8601.
type AuthResult struct {
	SPF   string `json:"spf"`
	DKIM  string `json:"dkim"`
	DMARC string `json:"dmarc"`
	// Internal is "pass" if an account of this installation sent the message to
	// one of its inboxes. Account is the id of that account.
	Internal string `json:"internal,omitempty"`
	Account  string `json:"account,omitempty"`
	// Field is the value of the Authentication-Results field with all results.
	Field string `json:"field,omitempty"`
}

// AuthenticationResults is the name, in lower case, of the header field that
// carries authentication results (RFC 8601).
const AuthenticationResults = "authentication-results"

// ClaimsHost reports whether the value of an Authentication-Results field names
// host as its author. In an incoming message, this field is forged or outdated
// and must not be shown as ours (RFC 8601 section 5). Comments, case, versions
// and a final dot are ignored.
func ClaimsHost(value, host string) bool {
	name, ok := authServID(value)
	return ok && canonicalHost(name) == canonicalHost(host)
}

// canonicalHost returns host in lower case, as A-labels and without a final
// dot.
func canonicalHost(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return host
}

// authServID returns the first word of a field: a token or a quoted string,
// after white space and comments. It returns false if there is none.
func authServID(s string) (string, bool) {
	s = skipComments(s)
	if s == "" {
		return "", false
	}
	if s[0] != '"' {
		end := strings.IndexAny(s, " \t\r\n;(")
		if end < 0 {
			end = len(s)
		}
		return s[:end], end > 0
	}
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return strings.TrimSpace(out.String()), true
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
		}
		out.WriteByte(s[i])
	}
	return "", false
}

// skipComments returns s without leading white space and comments, which may be
// nested.
func skipComments(s string) string {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == '\\' && depth > 0:
			i++
		case depth == 0 && strings.IndexByte(" \t\r\n", c) < 0:
			return s[i:]
		}
	}
	return ""
}
