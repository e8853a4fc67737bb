package bounce

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// freeForm reads a bounce in a server's own words.
func (m *reportMail) freeForm() (rep Report) {
	if !m.mayBeReport() {
		return rep
	}
	found, whole := m.findRecipients()
	if len(found) == 0 { // the whole report may look like a returned message
		if fields := inlineStatus(strings.Split(m.tail, "\n")); fields != "" {
			return m.readStatus(fields)
		}
	}
	delayed := m.saysDelayed()
	for _, f := range found {
		said, v := m.interpretFound(f, found, whole)
		r := Recipient{Email: f.email, Outcome: Bounced, Hard: v.hard(), Reason: v.reason, Status: v.status, Code: v.code, Diagnostic: cutDiagnostic(said)}
		if delayed {
			r.Outcome, r.Hard = Delayed, false
		}
		rep.Recipients = append(rep.Recipients, r)
	}
	return rep
}

// maxIntro is the number of lines read before the first of several addresses.
const maxIntro = 20

// interpretFound returns the text about a found address and its meaning. The reason
// follows the address, mostly in the same paragraph. It may also come before all
// addresses.
func (m *reportMail) interpretFound(f foundRecipient, found recipientSet, whole bool) (said string, v meaning) {
	alone := len(found) == 1
	tries := []string{m.saidFrom(f.line, f.email)}
	switch {
	case alone && whole:
		tries = []string{m.head}
	case alone:
		tries = append(tries, m.head)
	case whole:
		tries = []string{m.lines[f.line], m.saidFrom(f.line, f.email)}
	default:
		tries = append(tries, strings.Join(m.lines[:min(found[0].line, maxIntro)], "\n"))
	}
	for i, said := range tries {
		near := said
		if i == 0 && !whole {
			near = cmp.Or(firstReply(said), said)
		}
		if v = interpret(near, "", said, ""); v.reason != ReasonNone {
			return said, v
		}
	}
	return tries[len(tries)-1], v
}

// firstReply returns the text about an address up to the first empty line, if
// it contains a server's reply, else "". A transcript or a footer may follow. An
// address alone is not a paragraph.
func firstReply(said string) string {
	first, rest, _ := strings.Cut(plaintext.Truncate(said, maxSaid), "\n")
	more, _, _ := strings.Cut(strings.TrimLeft(rest, "\n"), "\n\n")
	if first += "\n" + more; findCode(first) > 0 || findFailure(first) != "" {
		return first
	}
	return ""
}

// mayBeReport reports whether a server wrote the message to report a failed
// delivery. No single sign is enough, so that a personal message or a shop's
// parcel notice is not mistaken for a bounce. If the sender or the envelope
// shows that it is from a mail server, fewer signs in the subject and text are
// required.
func (m *reportMail) mayBeReport() bool {
	if m.isOtherReport || m.isAutoReply() || m.isDigest() {
		return false
	}
	subject, words := containsAny(m.subject, phrases().subject), containsAny(m.head, phrases().text)
	returns, fails := m.original != "" || m.tail != "", m.showsFailure()
	switch {
	case !fails && containsAny(m.subject+"\n"+m.head, phrases().delivered):
		return false
	case m.byDaemon() || m.isReport:
		return len(m.failed) > 0 || subject || (words || m.nullPath) && m.saysDelayed() || words && fails || m.nullPath && m.givesReason(fails)
	case !returns && strings.HasPrefix(strings.ToLower(m.subject), "re:"), m.isForward(): // a person writes about a bounce
		return false
	case m.nullPath:
		return len(m.failed) > 0 || fails && (subject || words) || subject && words && reasonOf(m.head) != ReasonNone
	}
	return words && returns && (subject || strings.HasPrefix(localPart(m.from.Email), "no-reply"))
}

// isDigest reports whether a filter lists messages that it holds for the recipient.
// It returns none of them.
func (m *reportMail) isDigest() bool {
	if m.isReport || len(m.failed) > 0 || m.original != "" || m.tail != "" {
		return false
	}
	return containsAny(m.subject, phrases().held) || containsAny(m.head, phrases().held) && containsAny(m.head, phrases().release)
}

// isForward reports whether a person forwarded the text of a bounce. A forward
// with the whole delivery status still is a report.
func (m *reportMail) isForward() bool {
	return beginsWithAny(m.subject, forwardPrefixes) && !strings.Contains(strings.ToLower(m.text), "final-recipient:")
}

// forwardPrefixes begin the subject of a forwarded message.
var forwardPrefixes = []string{"fwd:", "fw:", "wg:", "tr:", "rv:", "i:", "enc:"}

// givesReason reports whether the text gives a reason for a failure. Without a
// code, spam and viruses are none: filters also write to recipients about these.
func (m *reportMail) givesReason(told bool) bool {
	reason := reasonOf(m.head)
	return reason != ReasonNone && (told || reason != ReasonContent)
}

// showsFailure reports whether the message contains the returned message, a
// reply code or a status.
func (m *reportMail) showsFailure() bool {
	head := plaintext.Truncate(m.head, maxSaid)
	return m.original != "" || m.tail != "" || findCode(head) > 0 || findFailure(head) != ""
}

// byServer reports whether the message comes from a server, by its sender,
// its parts or its subject. A person or a newsletter may quote an error in a
// sentence, or ask about "Undeliverable mail?".
func (m *reportMail) byServer() bool {
	return m.byDaemon() || m.isReport || len(m.failed) > 0 || m.original != "" || m.tail != "" ||
		containsAny(m.subject, phrases().subject) && !strings.HasSuffix(m.subject, "?")
}

// byDaemon reports whether the message is from an address or name that mail
// servers use.
func (m *reportMail) byDaemon() bool {
	if m.hasFrom {
		local := strings.Map(func(r rune) rune {
			if r == '-' || r == '_' || r == '.' {
				return -1
			}
			return r
		}, localPart(m.from.Email))
		switch local {
		case "postmaster", "maildeliverysystem", "mailsystem", "mmdf", "mailer", "ndr", "uucp", "bounce", "bounces":
			return true
		}
		if strings.Contains(local, "daemon") {
			return true
		}
	}
	if strings.HasSuffix(localPart(m.from.Email), "-bounces") { // of a list manager
		return true
	}
	name := strings.ToLower(m.from.Name)
	return strings.Contains(name, "mailer-daemon") || strings.Contains(name, "mail delivery s") || strings.Contains(name, "system administrator")
}

func localPart(email string) string {
	local, _, _ := strings.Cut(email, "@")
	return strings.ToLower(local)
}

func containsAny(text string, words []string) bool {
	text = plaintext.FoldSpace(strings.ToLower(text))
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// saysDelayed reports whether the server is still retrying.
func (m *reportMail) saysDelayed() bool {
	return containsAny(m.subject+"\n"+m.head, phrases().delayed) && !containsAny(m.head, phrases().final)
}
