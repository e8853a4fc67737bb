package mime

import "strings"

// FirstToken returns the part of a header value before parameters and comments,
// in lower case.
func FirstToken(s string) string {
	if i := strings.IndexAny(s, ";("); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(strings.TrimSpace(s))
}
