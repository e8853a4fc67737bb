package mail

import (
	"strings"

	"golang.org/x/net/idna"
)

// AuthResult says how SPF, DKIM and DMARC ended for a received message, in the words
// of RFC 8601.
type AuthResult struct {
	SPF   string `json:"spf"`
	DKIM  string `json:"dkim"`
	DMARC string `json:"dmarc"`
	// Internal is "pass" for a message that an account of this installation sent to
	// another inbox of it, and Account is that account's id.
	Internal string `json:"internal,omitempty"`
	Account  string `json:"account,omitempty"`
	// Field is the value of the Authentication-Results field that says all of it.
	Field string `json:"field,omitempty"`
}

// AuthenticationResults is the name of the field in which hosts tell each other
// who a message is from (RFC 8601), in lower case.
const AuthenticationResults = "authentication-results"

// ClaimsHost reports whether the value of an Authentication-Results field says
// that it is from host. Such a field in a message that comes in is forged, or from
// another time: it must not be shown as ours (RFC 8601 section 5). Comments,
// case, versions, and a dot at the end make no difference.
func ClaimsHost(value, host string) bool {
	name, ok := authServID(value)
	return ok && canonicalHost(name) == canonicalHost(host)
}

// canonicalHost is a host name in the form that all its spellings share.
func canonicalHost(host string) string {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ascii, err := idna.Lookup.ToASCII(host); err == nil {
		return ascii
	}
	return host
}

// authServID reads the first word of a field: a token or a quoted string, after
// white space and comments. False when there is none.
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

// skipComments returns what follows white space and comments, which may be
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
