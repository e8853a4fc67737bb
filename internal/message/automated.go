package message

import "strings"

// Automated reports whether a program rather than a person wrote the mail, so
// that no program should answer it (RFC 3834): by Auto-Submitted, Precedence,
// List-Id or the null reverse-path of its envelope.
func (m *Message) Automated(nullReversePath bool) bool {
	if nullReversePath || m.ListID != "" {
		return true
	}
	if v := firstToken(m.AutoSubmitted); v != "" && v != "no" {
		return true
	}
	switch firstToken(m.Precedence) {
	case "bulk", "list", "junk", "auto_reply", "auto-reply":
		return true
	}
	return false
}

// firstToken returns what stands before parameters and comments in a header
// value, in lower case.
func firstToken(s string) string {
	if i := strings.IndexAny(s, ";("); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(strings.TrimSpace(s))
}
