package mime

import "strings"

// FirstToken returns what stands before parameters and comments in a header
// value, in lower case.
func FirstToken(s string) string {
	if i := strings.IndexAny(s, ";("); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(strings.TrimSpace(s))
}
