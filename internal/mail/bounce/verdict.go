package bounce

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// A verdict is what a server's text means for one recipient.
type verdict struct {
	reason Reason
	status string
	code   int
}

func (v verdict) hard() bool { return v.reason.hard() }

// judge interprets the rejecting server's text, the reporting server's comment,
// its text for people and its status. The rejecting server's text counts most,
// because reporting servers often derive the status from a table.
func judge(diagnostic, comment, said, status string) verdict {
	diagnostic, said = plaintext.Truncate(diagnostic, maxSaid), plaintext.Truncate(said, maxSaid)
	v := verdict{status: bestStatus(findFailure(diagnostic), status, findFailure(said))}
	if v.code = findCode(diagnostic); v.code == 0 {
		v.code = findCode(said)
	}
	for _, text := range []string{diagnostic, comment, said} {
		if v.reason = reasonOf(text); v.reason != ReasonNone {
			break
		}
	}
	if meant := reasonOfStatus(v.status); v.reason == ReasonNone || v.reason == ReasonRefused && meant.hard() && !isWish(diagnostic+said) {
		v.reason = meant // the status is more specific than "rejected" alone
	}
	v.weigh(diagnostic + "\n" + said)
	return v
}

// weigh replaces a hard reason that other signs contradict. Some servers reject
// unwanted messages with "user unknown". So a hard reason needs more: a certain
// phrase, a status about the address, a rejection of RCPT TO, or the address in
// the text. Text about a missing domain needs none of these.
func (v *verdict) weigh(text string) {
	at, byStatus := stageOf(text), statusSubject(v.status) == "5.1" || statusSubject(v.status) == "4.1"
	switch {
	case !v.hard():
	case at == stageMail, v.status == "5.1.7", v.status == "5.1.8":
		v.reason = ReasonSender // the sender's address is unknown
	case v.reason == ReasonNoDomain:
		if strings.HasPrefix(v.status, "4") {
			v.reason = ReasonNetwork // the domain may resolve later
		}
	case byStatus:
	case at != stageData && isCertain(text):
	case strings.HasPrefix(v.status, "5.7"): // security or policy, RFC 3463 section 3.8
		v.reason = ReasonRefused
	case at == stageData, at == stageUnknown && v.code > 0 && !namesAddress(text):
		v.reason = ReasonRefused
	}
}

// namesAddress reports whether a server's text is certainly about the address.
func namesAddress(text string) bool {
	before := ""
	for word := range strings.FieldsSeq(text) { // "550 <a@b.example>: Recipient address rejected"
		reply := findStatus(before) != "" || len(before) >= 3 && replyCode(before[:3]) > 0
		if reply && word[0] == '<' && strings.HasSuffix(word, ">:") {
			return true
		}
		before = word
	}
	return inOrder(plainWords(text), "doesn't have a * account") || containsAny(text, []string{
		"action not taken: mailbox unavailable", "542 ",
	})
}

// isCertain reports whether a server's text can only mean that the address does
// not exist, whatever its status and timing. Phrases directly after the address
// do not count: "550 a@b.example... No such user" is sendmail's form, which
// filtering gateways repeat when they reject the message themselves.
func isCertain(text string) bool {
	words := plainWords(text)
	for _, w := range phrases().certain {
		if at := strings.Index(words, w); at >= 0 && !strings.HasSuffix(words[:at], " @ ") {
			return true
		}
	}
	return false
}

// stage is the point in the SMTP transaction at which the message was rejected.
type stage int

const (
	stageUnknown stage = iota
	stageMail          // after the greeting or MAIL FROM
	stageRcpt          // after RCPT TO
	stageData          // after DATA, or after the message itself
)

// stageOf returns the stage at which the message was rejected.
func stageOf(text string) stage {
	text = strings.ReplaceAll(plaintext.FoldSpace(strings.ToLower(text)), "-------", " ")
	for _, s := range phrases().stages {
		for _, w := range s.list {
			if strings.Contains(text, w) {
				return s.stage
			}
		}
	}
	return stageUnknown
}

// bestStatus returns the first specific status, else the first one.
func bestStatus(list ...string) string {
	best := ""
	for _, s := range list {
		if s != "" && !strings.HasSuffix(s, ".0.0") {
			return s
		}
		if best == "" {
			best = s
		}
	}
	return best
}

// reasonOfStatus returns the reason that a status alone implies (RFC 3463 and
// the codes registered since).
func reasonOfStatus(s string) Reason {
	if len(s) < 2 {
		return ReasonNone
	}
	switch s[2:] {
	case "1.1", "1.3", "1.10":
		return ReasonNoMailbox
	case "1.2", "4.4", "1.9":
		return ReasonNoDomain
	case "1.6":
		return ReasonMoved
	case "1.7", "1.8":
		return ReasonSender
	case "2.1":
		return ReasonDisabled
	case "2.2":
		return ReasonFull
	case "2.3", "3.4":
		return ReasonTooLarge
	case "4.7":
		return ReasonExpired
	case "7.13":
		return ReasonDisabled
	}
	switch s[2] {
	case '3':
		return ReasonSystem
	case '4':
		return ReasonNetwork
	case '6':
		return ReasonContent
	case '7':
		return ReasonRefused
	}
	return ReasonNone
}

// statusSubject returns the class and subject of a status: "5.1" for "5.1.1".
func statusSubject(s string) string {
	if at := strings.LastIndexByte(s, '.'); at > 0 {
		return s[:at]
	}
	return ""
}

// cutDiagnostic converts a server's text to one line of bounded length.
func cutDiagnostic(s string) string {
	return plaintext.Truncate(plaintext.FoldSpace(plaintext.OneLine(plaintext.Truncate(s, 4*maxDiagnostic))), maxDiagnostic)
}
