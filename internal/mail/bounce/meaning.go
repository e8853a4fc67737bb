package bounce

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// meaning is what a server's text means for one recipient.
type meaning struct {
	reason Reason
	status string
	code   int
}

func (v meaning) hard() bool { return v.reason.hard() }

// interpret reads the rejecting server's text, the reporting server's comment,
// its text for people and its status. The rejecting server's text counts most,
// because reporting servers often derive the status from a table.
func interpret(diagnostic, comment, said, status string) meaning {
	diagnostic, said = plaintext.Truncate(diagnostic, maxSaid), plaintext.Truncate(said, maxSaid)
	v := meaning{status: bestStatus(findFailure(diagnostic), status, findFailure(said))}
	if v.code = findCode(diagnostic); v.code == 0 {
		v.code = findCode(said)
	}
	for _, text := range []string{diagnostic, comment, said} {
		if v.reason = reasonOf(text); v.reason != ReasonNone {
			break
		}
	}
	switch v.reason {
	case ReasonNone, ReasonRefused, ReasonSystem:
		if saysAbsent(diagnostic) {
			v.reason = ReasonNoMailbox
		}
	}
	if meant := reasonOfStatus(v.status); v.reason == ReasonNone || v.reason == ReasonRefused && meant.hard() && !isWish(diagnostic+said) {
		v.reason = meant // the status is more specific than "rejected" alone
	} else if meant == ReasonNoMailbox && !v.hard() && v.status[0] == '5' && saysUnknown(diagnostic) {
		v.reason = meant // status and words agree; other words are about the message that was returned
	}
	v.downgrade(diagnostic + "\n" + said)
	return v
}

// downgrade replaces a hard reason that other signs contradict. Some servers reject
// unwanted messages with "user unknown". So a hard reason needs more: a certain
// phrase, a status about the address, a rejection of RCPT TO, or the address in
// the text. Text about a missing domain needs none of these.
func (v *meaning) downgrade(text string) {
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
	case isCertain(text, at):
	case v.reason == ReasonMoved && reasonOfStatus(v.status) == ReasonMoved:
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
	words := plainWords(text)
	if slices.ContainsFunc(phrases().address, func(p string) bool { return inOrder(words, p) }) {
		return true
	}
	echoes := func(p string) bool { return strings.Contains(words, p+" @ ") } // gateways write "550 Unknown user a@b.example"
	return saysApart(words, phrases().unknown) && !slices.ContainsFunc(phrases().unknown, echoes)
}

// isCertain reports whether a server's text can only mean that the address does
// not exist, whatever its status and, with the phrases of the section "always",
// its timing.
func isCertain(text string, at stage) bool {
	words := plainWords(text)
	if slices.ContainsFunc(phrases().always, func(p string) bool { return inOrder(words, p) }) {
		return true
	}
	return at != stageData && (saysApart(words, phrases().certain) || saysAbsent(text))
}

// maxBetween is how far a recipient may stand from what is said of it, in bytes.
const maxBetween = 40

// clauses separates sentences, and Romance articles from nouns.
var clauses = strings.NewReplacer(". ", "; ", " l'", " ")

// saysAbsent reports whether a sentence says of a recipient, and of nobody else, that
// it does not exist. A phrase after an address with three dots does not count, nor do
// those of the section "unknown".
func saysAbsent(text string) bool {
	words := plainWords(text)
	if strings.Contains(words, "@... ") {
		return false
	}
	for clause := range strings.FieldsFuncSeq(clauses.Replace(words), func(r rune) bool { return r == ';' || r == '(' }) {
		has := func(p string) bool { return strings.Contains(clause, p) }
		if slices.ContainsFunc(phrases().unknown, has) {
			continue
		}
		for _, p := range phrases().absent {
			at := strings.Index(clause, p)
			if at < 0 {
				continue
			}
			near := clause[max(0, at-maxBetween):min(len(clause), at+len(p)+maxBetween)]
			begins := func(word string) bool { return strings.Contains(near, " "+word) }
			if slices.ContainsFunc(phrases().who, begins) && !slices.ContainsFunc(phrases().others, begins) {
				return true
			}
		}
	}
	return false
}

// saysUnknown reports whether a server's text has the words of a recipient that
// does not exist, wherever they stand.
func saysUnknown(text string) bool {
	words := plainWords(text)
	has := func(p string) bool { return inOrder(words, p) }
	return slices.ContainsFunc(phrases().unknown, has) || slices.ContainsFunc(phrases().certain, has)
}

// saysApart reports whether words contain a phrase that does not follow an
// address with three dots. The dots are sendmail's form, "550 a@b.example... No
// such user", which filtering gateways repeat when they reject the message
// themselves.
func saysApart(words string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		if strings.Contains(p, "*") {
			return inOrder(words, p)
		}
		before, _, ok := strings.Cut(words, p)
		return ok && !strings.HasSuffix(before, " @... ") && !strings.HasSuffix(before, " : ")
	})
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
// the codes registered since, see docs/bounce-codes.md). A transient status
// alone never means that the address is wrong.
func reasonOfStatus(s string) Reason {
	if len(s) < 5 {
		return ReasonNone
	}
	r, ok := statusReasons[s[2:]]
	if !ok {
		r = subjectReasons[s[2]]
	}
	if s[0] == '4' && r.hard() {
		return ReasonSystem
	}
	return r
}

// subjectReasons are the reasons of the other codes of a subject.
var subjectReasons = map[byte]Reason{'3': ReasonSystem, '4': ReasonNetwork, '5': ReasonSystem, '6': ReasonContent, '7': ReasonRefused}

var statusReasons = map[string]Reason{
	"1.1": ReasonNoMailbox, "1.2": ReasonNoDomain, "1.3": ReasonNoMailbox, "1.6": ReasonMoved, "1.7": ReasonSender, "1.8": ReasonSender,
	"1.10": ReasonNoMailbox, "2.1": ReasonDisabled, "2.2": ReasonFull, "2.3": ReasonTooLarge, "3.4": ReasonTooLarge, "4.4": ReasonNoDomain,
	"4.7": ReasonExpired, "5.3": ReasonRate, "7.8": ReasonUnproven, "7.13": ReasonDisabled, "7.16": ReasonTooLarge,
	"7.17": ReasonMoved, "7.18": ReasonMoved, "7.20": ReasonUnproven, "7.21": ReasonUnproven, "7.22": ReasonUnproven, "7.23": ReasonUnproven,
	"7.24": ReasonUnproven, "7.25": ReasonUnproven, "7.26": ReasonUnproven, "7.27": ReasonSender, "7.28": ReasonRate, "7.29": ReasonUnproven,
	// Not registered: Exchange Online and Gmail.
	"1.20": ReasonSender, "1.90": ReasonRate, "1.351": ReasonNoMailbox, "2.121": ReasonRate, "2.122": ReasonRate, "4.300": ReasonExpired,
	"4.310": ReasonNoDomain, "4.316": ReasonExpired, "7.40": ReasonUnproven, "7.232": ReasonRate, "7.233": ReasonRate,
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
