package bounce

import (
	"cmp"
	"strings"

	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// statusReport reads a delivery status notification (RFC 3464), in a part of
// its own or within the text.
func (m *reportMail) statusReport() Report {
	if m.status != "" {
		return m.readStatus(m.status)
	}
	if fields := inlineStatus(m.lines); fields != "" && m.mayBeReport() {
		return m.readStatus(fields)
	}
	return Report{}
}

func (m *reportMail) readStatus(fields string) (rep Report) {
	for _, g := range statusGroups(fields) {
		if rep.EnvelopeID == "" {
			rep.EnvelopeID = plaintext.OneLine(plaintext.Truncate(g["original-envelope-id"], maxDiagnostic))
		}
		if g["final-recipient"] == "" && g["original-recipient"] == "" {
			continue
		}
		if r, ok := m.reportedBy(g); ok {
			rep.Recipients = append(rep.Recipients, r)
		}
		if len(rep.Recipients) == maxReported {
			break
		}
	}
	return rep
}

// inlineStatus returns the text from the first delivery status field on, or "".
func inlineStatus(lines []string) string {
	has := func(name string) int {
		for i, line := range lines {
			if before, _, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.TrimSpace(before), name) {
				return i
			}
		}
		return -1
	}
	recipient, action := has("Final-Recipient"), has("Action")
	if recipient < 0 || action < 0 {
		return ""
	}
	start := min(recipient, action)
	if mta := has("Reporting-MTA"); mta >= 0 {
		start = min(start, mta)
	}
	return strings.Join(lines[start:], "\n")
}

// statusGroup maps lower-case names to the fields about the message or about
// one recipient.
type statusGroup map[string]string

// statusGroups splits a delivery status at empty lines, and before a second
// Final-Recipient in a group.
func statusGroups(s string) (groups []statusGroup) {
	for block := range strings.SplitSeq(s, "\n\n") {
		g := statusGroup{}
		mime.Fields([]byte(block+"\n"), func(f mime.Field) {
			name := strings.ToLower(string(f.Name))
			if _, twice := g[name]; twice && name == "final-recipient" {
				groups, g = append(groups, g), statusGroup{}
			}
			if _, twice := g[name]; !twice {
				g[name] = plaintext.OneLine(mime.ValidUTF8([]byte(f.Unfolded())))
			}
		})
		if groups = append(groups, g); len(groups) > 2*maxReported {
			break
		}
	}
	return groups
}

// reportedBy converts the fields about one recipient. It returns false if they
// contain no address.
func (m *reportMail) reportedBy(g statusGroup) (r Recipient, ok bool) {
	final, original := reportedAddress(g["final-recipient"]), reportedAddress(g["original-recipient"])
	r.Email, r.Original = final, original
	if original != "" && !strings.Contains(domainOf(final), ".") { // a file, a program or an internal mailbox name
		r.Email = original
	}
	if r.Email == "" {
		r.Email = m.soleRecipient()
	}
	if r.Email == "" {
		return r, false
	}
	if strings.EqualFold(r.Email, r.Original) {
		r.Original = ""
	}
	kind, diagnostic, _ := cutType(g["diagnostic-code"])
	statusField, comment := g["status"], ""
	if at := strings.IndexByte(statusField, '('); at >= 0 {
		statusField, comment = statusField[:at], statusField[at:]
	}
	said := m.saidOf(&r)
	v := interpret(cmp.Or(diagnostic, firstReply(said)), comment, said, findStatus(statusField))
	if kind == "x-unix" && v.hard() { // a program failed, RFC 3464 section 2.3.6
		v.reason = ReasonSystem
	}
	r.Outcome, r.Status = outcomeOf(g["action"], findStatus(statusField), m), v.status
	if r.Outcome == Delivered {
		return r, true
	}
	if diagnostic == "" {
		diagnostic = said
	}
	r.Hard, r.Reason, r.Code, r.Diagnostic = r.Outcome == Bounced && v.hard(), v.reason, v.code, cutDiagnostic(diagnostic)
	return r, true
}

// outcomeOf reads an Action field (RFC 3464 section 2.3.3). If it is missing,
// the status and the text decide.
func outcomeOf(action, status string, m *reportMail) Outcome {
	switch mime.FirstToken(action) {
	case "failed":
		return Bounced
	case "delayed":
		return Delayed
	case "delivered", "relayed", "expanded":
		return Delivered
	case "":
		if strings.HasPrefix(status, "2") {
			return Delivered
		}
		if strings.HasPrefix(status, "4") || m.saysDelayed() {
			return Delayed
		}
	}
	return Bounced
}

// cutType splits a typed value, as in "smtp; 550 5.1.1 unknown".
func cutType(s string) (kind, value string, ok bool) {
	kind, value, ok = strings.Cut(s, ";")
	if !ok || strings.ContainsAny(strings.TrimSpace(kind), " <") {
		return "", strings.TrimSpace(s), false
	}
	return strings.ToLower(strings.TrimSpace(kind)), strings.TrimSpace(value), true
}
