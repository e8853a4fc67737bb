package mime

import (
	"slices"
	"strings"
)

// noReplyNames are local parts of automated senders, in lower case. A local
// part that begins with "bounce" is one too.
var noReplyNames = []string{"no-reply", "noreply", "donotreply", "do-not-reply", "mailer-daemon", "notifications"}

// Automated reports whether a program sent the message, so that no program
// should reply to it (RFC 3834). It checks Auto-Submitted, Precedence, List-*
// fields, the null reverse-path, and the local part of From.
func (m *Message) Automated(nullReversePath bool) bool {
	if nullReversePath || m.HasListField || m.From != nil && isNoReply(m.From.Email) {
		return true
	}
	if v := FirstToken(m.AutoSubmitted); v != "" && v != "no" {
		return true
	}
	switch FirstToken(m.Precedence) {
	case "bulk", "list", "junk", "auto_reply", "auto-reply":
		return true
	}
	return false
}

// isNoReply reports whether the local part of an address, without a "+" tag,
// belongs to an automated sender.
func isNoReply(address string) bool {
	local, _, _ := strings.Cut(address, "@")
	local, _, _ = strings.Cut(local, "+")
	local = strings.ToLower(local)
	return slices.Contains(noReplyNames, local) || strings.HasPrefix(local, "bounce")
}
