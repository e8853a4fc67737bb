package reply

import (
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// subjectMarks are the prefixes that email clients add to the subject of a
// reply or a forward, in lower case and without the colon.
var subjectMarks = map[string]bool{
	"re": true, "fw": true, "fwd": true,
	"aw": true, "wg": true, "antwort": true, "weitergeleitet": true, // German
	"sv": true, "vs": true, "vb": true, "vl": true, "fs": true, // Nordic, Estonian
	"tr": true, "rép": true, "réf": true, "réponse": true, // French
	"rv": true, "res": true, "resp": true, "enc": true, "reenv": true, // Spanish, Portuguese
	"r": true, "i": true, "rif": true, "inoltra": true, // Italian
	"antw": true, "doorst": true, // Dutch
	"odp": true, "pd": true, "odg": true, "odpověď": true, // Polish, Croatian, Slovenian, Czech
	"ynt": true, "ilt": true, "i̇lt": true, "yan": true, // Turkish; İ in lower case is i and a dot
	"vá": true, "továbbítás": true, // Hungarian
	"ats": true, "atb": true, "yml": true, // Lithuanian, Welsh
	"bls": true, "trs": true, "balas": true, // Indonesian
	"απ": true, "πρθ": true, "σχετ": true, // Greek
	"ha": true, "на": true, "ответ": true, "отв": true, "пересл": true, "відп": true, "пер": true, // Russian, Ukrainian
	"השב": true, "הועבר": true, // Hebrew
	"رد": true, "إعادة توجيه": true, // Arabic
	"回复": true, "回覆": true, "转发": true, "轉寄": true, "答复": true, "转寄": true, "答覆": true, "轉發": true, // Chinese
	"返信": true, "転送": true, // Japanese
	"회신": true, "답장": true, "전달": true, // Korean
	"ตอบ": true, "ส่งต่อ": true, // Thai
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
		rest, ok := cutMark(s)
		if !ok {
			return s
		}
		s = rest
	}
}

// HasReplyMark reports whether a subject begins with a reply or forward mark,
// such as "Re:" or "WG:".
func HasReplyMark(s string) bool {
	_, ok := cutMark(plaintext.FoldSpace(s))
	return ok
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
func cutMark(s string) (rest string, ok bool) {
	end := strings.IndexAny(plaintext.Truncate(s, maxMark*utf8.UTFMax), ":：")
	if end <= 0 {
		return s, false
	}
	mark := strings.TrimRight(s[:end], " ")
	if open := strings.IndexAny(mark, "([^"); open > 0 && isCounter(mark[open:]) {
		mark = mark[:open]
	}
	if utf8.RuneCountInString(mark) > maxMark || !subjectMarks[strings.ToLower(strings.TrimSpace(mark))] {
		return s, false
	}
	_, size := utf8.DecodeRuneInString(s[end:])
	return strings.TrimLeft(s[end+size:], " "), true
}

// isCounter reports whether s is "(2)", "[2]" or "^2".
func isCounter(s string) bool {
	s = strings.TrimRight(strings.TrimLeft(s, "([^"), ")]")
	return s != "" && strings.Trim(s, "0123456789") == ""
}
