package bounce

import (
	"slices"
	"strings"
)

// isAutoReply reports whether a program replied on behalf of the sender (RFC
// 3834), as in an absence note or a help desk receipt.
func (m *reportMail) isAutoReply() bool {
	if m.byDaemon() {
		return false
	}
	answers := m.auto == "auto-replied" || m.auto == "auto-notified"
	if answers && len(m.failed) == 0 || m.vacation {
		return !containsAny(m.subject, phrases().subject)
	}
	subject := strings.ToLower(m.subject)
	return slices.ContainsFunc(phrases().autoReply, func(prefix string) bool { return strings.HasPrefix(subject, prefix) })
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
