package mime

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// noReplyNames are local parts of automated senders, in lower case. A local
// part that begins with "bounce" is one too.
var noReplyNames = []string{"no-reply", "noreply", "donotreply", "do-not-reply", "mailer-daemon", "notifications"}

// Automated reports whether a program sent the message, so that no program
// should reply to it (RFC 3834). It checks Auto-Submitted, Precedence, List-*
// fields, the fields of automatic replies, the null reverse-path, the local part of
// From, and the subject of a message that answers another.
func (m *Message) Automated(nullReversePath bool) bool {
	if nullReversePath || m.HasListField || m.AutoReply || m.From != nil && isNoReply(m.From.Email) {
		return true
	}
	if v := FirstToken(m.AutoSubmitted); v != "" && v != "no" {
		return true
	}
	switch FirstToken(m.Precedence) {
	case "bulk", "list", "junk", "auto_reply", "auto-reply":
		return true
	}
	return len(m.InReplyTo)+len(m.References) > 0 && IsAutoReplySubject(m.Subject)
}

// IsAutoReply reports whether the field marks its message as an automatic reply.
// X-Auto-Response-Suppress does not: it asks for none.
func (f Field) IsAutoReply() bool {
	if c := f.Name[0] | 0x20; c != 'x' && c != 'p' && c != 'd' {
		return false
	}
	switch name := strings.ReplaceAll(strings.ToLower(string(f.Name)), "-", ""); name {
	case "xprecedence", "preference":
		return strings.HasPrefix(FirstToken(f.Text()), "auto")
	case "xappleaction":
		return strings.EqualFold(f.Text(), "vacation")
	case "deliveredto", "xpostmessageclass":
		return strings.Contains(strings.ToLower(f.Text()), "autoresponder")
	case "xvacation", "xfcmachinegenerated", "xmailautoreply":
		return isYes(FirstToken(f.Text()))
	default:
		return (strings.HasPrefix(name, "xautorepl") || strings.HasPrefix(name, "xautorespon")) && name != "xautoresponsesuppress" && isYes(FirstToken(f.Text()))
	}
}

// isYes reports whether the value of a field that marks messages is not a "no".
func isYes(said string) bool { return said != "no" && said != "false" && said != "0" }

// autoReplies lists how the subjects of automatic replies begin, separated by "|".
//
//go:embed autoreplies.txt
var autoReplies string

// autoReplySubjects is built on first use and then only read.
var autoReplySubjects = sync.OnceValue(func() (list []string) {
	for line := range strings.Lines(autoReplies) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		for subject := range strings.SplitSeq(line, "|") {
			if subject = strings.TrimSpace(subject); subject != "" {
				list = append(list, subject)
			}
		}
	}
	return list
})

// maxAutoReply is longer than the beginning of any subject in autoReplies.
const maxAutoReply = 100

// IsAutoReplySubject reports whether a subject begins as that of an automatic
// reply does, as in "Automatic reply: Offer".
func IsAutoReplySubject(subject string) bool {
	subject = strings.ToLower(plaintext.Truncate(strings.TrimLeft(subject, " [(*"), maxAutoReply))
	return slices.ContainsFunc(autoReplySubjects(), func(start string) bool { return strings.HasPrefix(subject, start) })
}

// isNoReply reports whether the local part of an address, without a "+" tag,
// belongs to an automated sender.
func isNoReply(address string) bool {
	local, _, _ := strings.Cut(address, "@")
	local, _, _ = strings.Cut(local, "+")
	local = strings.ToLower(local)
	return slices.Contains(noReplyNames, local) || strings.HasPrefix(local, "bounce")
}
