package bounce

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail/mime"
)

// isAutoReply reports whether a program replied on behalf of the sender (RFC
// 3834), as in an absence note or a help desk receipt.
func (m *reportMail) isAutoReply() bool {
	if m.byDaemon() {
		return false
	}
	replies := m.auto == "auto-replied" || m.auto == "auto-notified"
	if replies && len(m.failed) == 0 || m.vacation {
		return !containsAny(m.subject, phrases().subject)
	}
	return mime.IsAutoReplySubject(m.subject)
}

// beginsWithAny reports whether s begins with one of the prefixes, which are lower case.
// Case is ignored in s.
func beginsWithAny(s string, prefixes []string) bool {
	s = strings.ToLower(s)
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(s, prefix) })
}

// autoReply reads an automatic reply.
func (m *reportMail) autoReply() (rep Report) {
	if !m.hasFrom || !m.isAutoReply() {
		return rep
	}
	email := plausibleAddress(m.from.Email)
	if email == "" {
		return rep
	}
	rep.Recipients = []Recipient{{Email: email, Outcome: AutoReplied}}
	return rep
}
