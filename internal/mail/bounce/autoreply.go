package bounce

import "strings"

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
	return beginsWithAny(strings.ToLower(m.subject), phrases().autoReply)
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

func beginsWithAny(s string, list []string) bool {
	for _, prefix := range list {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}
