package reply

import (
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// subjectMark is what a prefix of a subject says about the message.
type subjectMark uint8

const (
	noMark subjectMark = iota
	answer
	forward
)

// subjectMarks are the prefixes that email clients add to the subject of a
// reply or a forward, in lower case and without the colon.
var subjectMarks = map[string]subjectMark{
	"re": answer, "fw": forward, "fwd": forward,
	"aw": answer, "wg": forward, "antwort": answer, "weitergeleitet": forward, // German
	"sv": answer, "vs": answer, "vb": forward, "vl": forward, "fs": forward, // Nordic, Estonian
	"tr": forward, "rép": answer, "réf": answer, "réponse": answer, // French
	"rv": forward, "res": answer, "resp": answer, "enc": forward, "reenv": forward, // Spanish, Portuguese
	"r": answer, "i": forward, "rif": answer, "inoltra": forward, // Italian
	"antw": answer, "doorst": forward, // Dutch
	"odp": answer, "pd": forward, "odg": answer, "odpověď": answer, // Polish, Croatian, Slovenian, Czech
	"ynt": answer, "ilt": forward, "i̇lt": forward, "yan": answer, // Turkish; İ in lower case is i and a dot
	"vá": answer, "továbbítás": forward, // Hungarian
	"ats": answer, "atb": answer, "yml": forward, // Lithuanian, Welsh
	"bls": answer, "trs": forward, "balas": answer, // Indonesian
	"απ": answer, "πρθ": forward, "σχετ": answer, // Greek
	"ha": answer, "на": answer, "ответ": answer, "отв": answer, "пересл": forward, "відп": answer, "пер": forward, // Russian, Ukrainian
	"השב": answer, "הועבר": forward, // Hebrew
	"رد": answer, "إعادة توجيه": forward, // Arabic
	"回复": answer, "回覆": answer, "转发": forward, "轉寄": forward, "答复": answer, "转寄": forward, "答覆": answer, "轉發": forward, // Chinese
	"返信": answer, "転送": forward, // Japanese
	"회신": answer, "답장": answer, "전달": forward, // Korean
	"ตอบ": answer, "ส่งต่อ": forward, // Thai
}

// maxMark is the maximum length of a mark with its counter, as in
// "antwort[12]".
const maxMark = 16

// NormalizeSubject returns the subject without leading reply and forward marks
// and with folded white space, so that all messages of a thread have the same
// one. It keeps the case.
func NormalizeSubject(s string) string {
	s = plaintext.FoldSpace(s)
	for {
		rest, mark := cutMark(s)
		if mark == noMark {
			return s
		}
		s = rest
	}
}

// HasReplyMark reports whether a subject begins with a reply or forward mark,
// such as "Re:" or "WG:".
func HasReplyMark(s string) bool {
	_, mark := cutMark(plaintext.FoldSpace(s))
	return mark != noMark
}

// IsAnswer reports whether a subject begins with a reply mark, such as "Re:",
// and not with a forward mark.
func IsAnswer(s string) bool {
	_, mark := cutMark(plaintext.FoldSpace(s))
	return mark == answer
}

// ReplySubject returns the subject of a reply to a message with subject s. It
// does not add a second "Re:".
func ReplySubject(s string) string {
	s = plaintext.FoldSpace(s)
	if len(s) >= 3 && strings.EqualFold(s[:3], "re:") {
		return s
	}
	return strings.TrimSpace("Re: " + s)
}

// ForwardSubject returns the subject of a forward of a message with subject s.
func ForwardSubject(s string) string {
	s = plaintext.FoldSpace(s)
	if len(s) >= 4 && strings.EqualFold(s[:4], "fwd:") {
		return s
	}
	return strings.TrimSpace("Fwd: " + s)
}

// cutMark removes one leading mark such as "Re:", "AW:", "RE(2):" or "Re[3]:".
func cutMark(s string) (rest string, kind subjectMark) {
	end := strings.IndexAny(plaintext.Truncate(s, maxMark*utf8.UTFMax), ":：")
	if end <= 0 {
		return s, noMark
	}
	mark := strings.TrimRight(s[:end], " ")
	if open := strings.IndexAny(mark, "([^"); open > 0 && isCounter(mark[open:]) {
		mark = mark[:open]
	}
	kind = subjectMarks[strings.ToLower(strings.TrimSpace(mark))]
	if kind == noMark || utf8.RuneCountInString(mark) > maxMark {
		return s, noMark
	}
	_, size := utf8.DecodeRuneInString(s[end:])
	return strings.TrimLeft(s[end+size:], " "), kind
}

// isCounter reports whether s is "(2)", "[2]" or "^2".
func isCounter(s string) bool {
	s = strings.TrimRight(strings.TrimLeft(s, "([^"), ")]")
	return s != "" && strings.Trim(s, "0123456789") == ""
}
