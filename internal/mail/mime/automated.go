package mime

import (
	"slices"
	"strings"
)

// noReplyNames are local parts, in lower case, of senders that are programs. Local
// parts that begin with "bounce" are too.
var noReplyNames = []string{"no-reply", "noreply", "donotreply", "do-not-reply", "mailer-daemon", "notifications"}

// Automated reports whether a program rather than a person sent the message, so that
// no program should reply to it (RFC 3834): by Auto-Submitted, Precedence, a List-*
// field, the null reverse-path of its envelope, or the local part of its sender.
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

// isNoReply reports whether the local part of an address is one of a program. A tag
// behind "+" does not count.
func isNoReply(address string) bool {
	local, _, _ := strings.Cut(address, "@")
	local, _, _ = strings.Cut(local, "+")
	local = strings.ToLower(local)
	return slices.Contains(noReplyNames, local) || strings.HasPrefix(local, "bounce")
}
