package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// The minimum scores of a code and of an OTP.
const (
	codeScore = 5
	otpScore  = 6
)

// scoredCode is a code with its score.
type scoredCode struct {
	value string
	score int
}

// subjectHint is what the subject says about numbers in the text.
type subjectHint struct {
	noun, qualifier, elsewhere, shop, thing bool
	answer, forward                         bool     // the message is a reply or a forward
	keys                                    []string // tokens that look like issue keys and are not codes there
}

// codeScorer scores the tokens of one text.
type codeScorer struct {
	t         *codeText
	tokens    []codeToken
	hint      subjectHint
	inSubject bool

	why      *Explanation // nil unless asked for
	where    string
	evidence []Evidence // of the token that is scored
}

// maxScored limits the codes found in one text. Real messages have far fewer.
const maxScored = 4 * maxCodes

// codes returns the tokens whose context makes them codes.
func (s *codeScorer) codes() []scoredCode {
	var found []scoredCode
	var at []int // their token indexes
	almost := false
	for i := range s.tokens {
		if len(found) == maxScored || s.t.budget.Spent() {
			break
		}
		if s.tokens[i].value == "" {
			continue
		}
		score := s.score(i)
		s.why.code(s.tokens[i].value, s.where, score, s.evidence)
		s.evidence = nil
		if score >= codeScore && (score <= otpScore && s.isNamedElse(i) || s.hasEnded(i)) {
			continue
		}
		if score >= codeScore {
			found = append(found, scoredCode{s.tokens[i].value, score})
			at = append(at, i)
		} else if score >= codeScore-2 {
			almost = true
		}
	}
	return s.current(found, at, almost)
}

// current removes the codes that the text calls old. If it calls all of them
// old, it keeps them, but none can be the OTP. at holds the token index of each
// code. almost reports that another number may be the new code.
func (s *codeScorer) current(found []scoredCode, at []int, almost bool) []scoredCode {
	stale := make([]bool, len(found))
	for k := 0; k < len(at); {
		line, end := s.tokens[at[k]].line, k+1
		for end < len(at) && s.tokens[at[end]].line == line {
			end++
		}
		for _, w := range s.t.wordsOf(line) {
			if w.kind == oldWord {
				if n := s.nearest(at[k:end], w); n >= 0 && !s.isAskedBefore(at[k+n], w) && (len(found) > 1 || almost || s.callsOld(w, at[k])) {
					stale[k+n] = true
				}
			}
		}
		heads := k == 0 || s.tokens[at[k-1]].line < line-1 // the line above has no code that its words may describe
		if len(found) > 1 && end == k+1 && line > 0 && heads && s.standsAlone(&s.tokens[at[k]]) {
			for _, w := range s.t.wordsOf(line - 1) {
				stale[k] = stale[k] || w.kind == oldWord
			}
		}
		k = end
	}
	kept := make([]scoredCode, 0, len(found))
	for k, c := range found {
		if !stale[k] {
			kept = append(kept, c)
		}
	}
	if len(kept) > 0 {
		return kept
	}
	for k := range found {
		found[k].score = min(found[k].score, codeScore)
	}
	return found
}

// maxSame is the number of tokens with the same value that isNamedElse reads.
const maxSame = 4

// isNamedElse reports whether the value of token i is called something else
// near it: "Customer number: 448120. Quote code 448120."
func (s *codeScorer) isNamedElse(i int) bool {
	same := 0
	for j := max(0, i-maxSole); j < len(s.tokens) && j <= i+maxSole && same < maxSame; j++ {
		if j == i || s.tokens[j].value != s.tokens[i].value {
			continue
		}
		if same++; s.lookBefore(j).other {
			return true
		}
	}
	return false
}

// isAskedBefore reports whether the text asks for token i before an old word:
// "use 482913 instead of the earlier code".
func (s *codeScorer) isAskedBefore(i int, w codeWord) bool {
	return w.start >= s.tokens[i].end && s.lookBefore(i).asked
}

// hasEnded reports whether the sentence of token i says that it is old and no
// more: "The code 118203 that we sent at 09:02 has expired." It is not a
// condition or about another code, which a comma or a noun would show.
func (s *codeScorer) hasEnded(i int) bool {
	tok := &s.tokens[i]
	words := s.t.wordsOf(tok.line)
	for _, w := range words[lastBefore(words, tok.start)+1:] {
		gap := w.start - tok.end
		switch {
		case gap < 0:
			continue
		case gap > maxGap/2 || w.kind.isNoun() || strings.ContainsAny(s.t.text[tok.end:w.start], ",;()") || s.t.endsSentence(tok.end, w.start):
			return false
		case w.kind == oldWord:
			rest := strings.TrimLeft(plaintext.Truncate(s.t.text[w.end:s.t.lines[tok.line].end], maxCopula), " \r")
			return (rest == "" || strings.IndexByte(".!", rest[0]) >= 0 || strings.HasPrefix(rest, "。")) && !s.lookBefore(i).asked
		}
	}
	return false
}

// maxCalled is the maximum length, in bytes, of the text between "previous" and
// the code that it describes.
const maxCalled = 32

// callsOld reports whether an old word describes token i even if no newer code
// was found: "the previous code 118203". "It has expired" may be a condition.
func (s *codeScorer) callsOld(w codeWord, i int) bool {
	gap := s.tokens[i].start - w.end
	return gap >= 0 && gap <= maxCalled && !strings.Contains(s.t.text[w.end:s.tokens[i].start], ";")
}

// nearest returns the index in tokens of the nearest token in the sentence of
// word, or -1.
func (s *codeScorer) nearest(tokens []int, word codeWord) int {
	best, least := -1, maxGap
	for n, i := range tokens {
		tok := &s.tokens[i]
		from, to := tok.end, word.start
		if word.end <= tok.start {
			from, to = word.end, tok.start
		}
		if gap := to - from; gap >= 0 && gap < least && !s.t.endsSentence(from, to) {
			best, least = n, gap
		}
	}
	return best
}

// score returns the score of token i.
func (s *codeScorer) score(i int) int {
	tok := &s.tokens[i]
	if s.isAmount(tok) {
		return s.ruledOut("an amount, with a unit")
	}
	if s.isListed(i) {
		return s.ruledOut("one of a list, as backup codes are")
	}
	if s.isExample(tok) {
		return s.ruledOut("an example, in quotation marks")
	}
	before := s.lookBefore(i)
	if before.other || s.isNumbered(tok) && !before.asked && !before.close {
		return s.ruledOut("the words before name something else")
	}
	named := before.score > 0 && (before.qualified || len(tok.value) <= loneDigits) // a company's code is longer
	if !named && !before.asked && !(s.isPointedAt(tok) && !before.close) && !s.isSaid(tok) && !s.isFollowed(tok) && s.t.isAddress(tok) {
		return s.ruledOut("in the address of a company")
	}
	if !before.asked && !(before.verb && before.close) && (!s.standsAlone(tok) || slices.Contains(s.hint.keys, tok.value)) {
		switch {
		case tok.shape == letterCode && isWord(tok.value) && !s.isLabelled(tok):
			return s.ruledOut("a word in capitals")
		case isTicket(tok.value) && !s.isPointedAt(tok) && !s.isFollowed(tok):
			return s.ruledOut("the key of an issue")
		}
	}
	after, lines := s.lookAfter(i), s.lookAround(i)
	best := max(before.score, after.score, lines.score)
	switch {
	case best == 0:
	case best == before.score:
		s.note("a word for a code before", best)
	case best == after.score:
		s.note("a word for a code after", best)
	default:
		s.note("a word for a code on a line near, or in the subject", best)
	}
	weak := before.weak || after.weak || lines.weak
	asks := before.open && before.verb && s.hint.qualifier // "enter the confirmation code", and the subject is about sign-in
	if weak && !asks && s.opensElse(tok.line) {
		return s.ruledOut("a PIN or password of something else")
	}
	if before.open && !before.verb && s.hint.thing && !s.hint.noun && !s.hint.qualifier && !s.asksFor(i) && !after.verbNext {
		return s.ruledOut("a card's authorization code, under a subject such as receipt")
	}
	qualified := s.hint.qualifier || before.qualified || after.qualified || lines.qualified
	if weak && before.weak && !before.open && before.close && s.hint.noun && s.isPointedAt(tok) {
		best++
		s.note("the subject has a word for a code, too", 1)
	}
	if before.verb {
		best += 2
		s.note("a verb asks for it", 2)
		if best == 2 && (before.qualified || after.qualified || s.hint.noun) {
			best += 2
			if before.asked {
				best++
			}
			s.note("words of sign-in or security near", best-2)
		}
	}
	if best == 0 && after.verbAfter && qualified {
		best = 5
		s.note("a verb follows it", best)
	}
	sole := false
	if best == 0 || best == 2 {
		had := best
		sole = (before.asked || after.verbNext || !after.thing && (s.opensMessage(tok) || s.hint.qualifier && s.isQualified(tok))) && s.isSole(i)
		if sole || before.asked && s.isNumbered(tok) {
			best = 5 // "type 52740": the only number to type, or "type #4812"
		}
		if sole && (s.isNumbered(tok) || len(tok.value) >= minDigits+2) {
			best++
		}
		if best > had {
			s.note("the only number to type", best-had)
		}
	}
	switch {
	case best == 0:
		return s.ruledOut("no word for a code near")
	case !qualified && s.sells(tok.line):
		return s.ruledOut("words of advertising near")
	case weak && !before.close && isTrivial(tok.value):
		return s.ruledOut("a number that many people use as a password")
	case wordSets().comparer[lastLetters(s.before(tok))]:
		return s.ruledOut("an amount, after a comparison")
	case qualified && !(before.label && !before.qualified):
		best++
		s.note("words of sign-in or security near", 1)
	case before.named > 0 && !(s.hint.noun && !before.label):
		best -= before.named
		s.note("an unknown name before the word for a code", -before.named)
	}
	if s.inSubject {
		best++
		s.note("in the subject", 1)
	}
	shape := s.shapeScore(tok, before.asked || before.close, (qualified || s.isLabelled(tok)) && before.close && !before.weak)
	switch {
	case sole && (tok.shape == splitCode || tok.shape == caseCode || tok.shape == groupedCode):
		shape = 0
	case tok.shape == caseCode && before.close && before.weak && !before.open:
		shape = max(shape, 0) // "password Lk82vQ"
	case before.named > 0 && (before.label || !s.isPointedAt(tok)):
		shape = min(shape, 0)
	case sole && isYear(tok.value):
		shape = max(shape, -1)
	case tok.shape == letterCode && len(tok.value) > minLetters && before.asked && qualified && vowels(tok.value) == 0:
		shape = 0
	}
	if shape != 0 {
		s.note("its shape and place", shape)
	}
	return best + shape
}

// followsSample reports whether words such as "for example" directly precede a
// token.
func (s *codeScorer) followsSample(tok *codeToken) bool {
	before, samples := s.before(tok), wordSets().sample
	before = strings.TrimRight(lowerInPlace(before[max(0, len(before)-maxNamed):]), ":")
	for at := range len(before) {
		if (at == 0 || before[at-1] == ' ' || before[at-1] == '(' || before[at] >= utf8.RuneSelf) && samples[before[at:]] {
			return true
		}
	}
	return false
}

// isListed reports whether token i and two others next to it are alone on
// consecutive lines and have the same form.
func (s *codeScorer) isListed(i int) bool {
	like := func(j int) bool {
		if j < 0 || j >= len(s.tokens) {
			return false
		}
		a, b := &s.tokens[i], &s.tokens[j]
		return b.line-a.line == j-i && b.shape == a.shape && len(b.value) == len(a.value) && b.value != a.value && s.standsAlone(b)
	}
	if !like(i-1) && !like(i+1) {
		return false
	}
	return s.standsAlone(&s.tokens[i]) && (like(i-1) && (like(i-2) || like(i+1)) || like(i+1) && like(i+2))
}

// maxAsks and maxAskWords are the number of lines below a token, and of words in
// each, that asksFor reads.
const (
	maxAsks     = 3
	maxAskWords = 12
)

// asksFor reports whether a line below token i asks to enter a code: "Approval
// code: 204417. Enter the approval code on the page of the shop."
func (s *codeScorer) asksFor(i int) bool {
	line := s.tokens[i].line
	for l := line; l <= line+maxAsks && l < len(s.t.lines); l++ {
		words := s.t.wordsOf(l)
		first := max(1, lastBefore(words, s.tokens[i].end)+1)
		for w := first; w < min(len(words), first+maxAskWords); w++ {
			if words[w].kind.isNoun() && words[w-1].kind == useVerb && words[w].start > s.tokens[i].end && words[w].start-words[w-1].end <= maxCopula {
				return true
			}
		}
	}
	return false
}

// isExample reports whether a token directly follows "for example", or is in a
// quotation after a word such as "like": `messages like "Your code is 118203"`.
func (s *codeScorer) isExample(tok *codeToken) bool {
	start := max(s.t.lines[tok.line].start, tok.start-maxGap)
	quoted := s.t.text[start:tok.start]
	if s.followsSample(tok) {
		return true
	}
	open := strings.LastIndexAny(quoted, "\"“”„«»")
	if open < 0 {
		return false
	}
	before := strings.TrimRight(quoted[:open], " \"“”„«»:")
	return len(before) < open && wordSets().example[lastLetters(before)]
}

// isInterleaved reports whether a letter follows a digit of s.
func isInterleaved(s string) bool {
	at := strings.IndexAny(s, "0123456789")
	return at >= 0 && strings.Trim(s[at:], "0123456789") != ""
}

// isHex reports whether s is a hexadecimal number in lower case.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// afterParenthesis reports whether "(" precedes a token.
func (s *codeScorer) afterParenthesis(tok *codeToken) bool {
	return strings.HasSuffix(s.t.text[s.t.lines[tok.line].start:tok.start], "(")
}

// isTrivial reports whether a number counts up from one, as in articles about
// passwords.
func isTrivial(value string) bool { return strings.HasPrefix("1234567890", value) }

// endsClause reports whether a line or a sentence ends after a token.
func (s *codeScorer) endsClause(tok *codeToken) bool {
	rest := strings.TrimLeft(s.t.text[tok.end:s.t.lines[tok.line].end], " *_`\"')\t\r")
	return rest == "" || strings.IndexByte(".,;!", rest[0]) >= 0
}

// endsLine reports whether nothing but marks follows a token on its line.
func (s *codeScorer) endsLine(tok *codeToken) bool {
	return strings.Trim(plaintext.Truncate(s.t.text[tok.end:s.t.lines[tok.line].end], maxCopula), " *_`\"').\t\r") == ""
}

// isNumbered reports whether a number sign precedes a token, as in order and
// ticket numbers.
func (s *codeScorer) isNumbered(tok *codeToken) bool {
	return tok.start > 0 && s.t.text[tok.start-1] == '#'
}

// opensMessage reports whether a token begins a sentence as codes do: "482913 is
// what you need" under a subject about sign-in, or "482913 (valid for 5 minutes)"
// under the subject "Your code".
func (s *codeScorer) opensMessage(tok *codeToken) bool {
	before := s.before(tok)
	if !s.beginsSentence(tok) || strings.HasSuffix(before, ".") || plaintext.EndsWithColon(before) { // perhaps an abbreviation or a label
		return false
	}
	rest := strings.TrimLeft(plaintext.Truncate(s.t.text[tok.end:s.t.lines[tok.line].end], maxCopula), " *_`\r")
	return s.hint.qualifier && s.isFollowed(tok) || s.hint.noun && (rest == "" || strings.IndexByte("(.,;!", rest[0]) >= 0)
}

// isQualified reports whether a line begins with words of sign-in or security, a
// colon and a token of six digits: "Security check: 482913".
func (s *codeScorer) isQualified(tok *codeToken) bool {
	words := s.t.wordsOf(tok.line)
	return len(words) > 0 && words[0].kind == qualifier && words[0].start == s.t.lines[tok.line].start && tok.shape.isDigits() && len(tok.value) == loneDigits &&
		tok.start-words[0].start <= maxNamed && plaintext.EndsWithColon(s.before(tok))
}

// isSole reports whether token i is a number to type and no other token in the
// text looks like one.
func (s *codeScorer) isSole(i int) bool {
	tok := &s.tokens[i]
	switch tok.shape {
	case digitCode, groupCode, mixedCode, unevenCode, prefixCode, caseCode, groupedCode, splitCode:
	case wordCode:
		if !s.isPointedAt(tok) {
			return false
		}
	case letterCode:
		if len(tok.value) < minLetters || vowels(tok.value) > 0 {
			return false
		}
	default:
		return false
	}
	if len(tok.value) <= minDigits || tok.shape != wordCode && len(tok.value) > maxGrouped || tok.shape == digitCode && len(tok.value) > 8 || isYear(tok.value) && !s.hint.qualifier && !s.hint.noun {
		return false
	}
	end := s.t.footer()
	if tok.line >= end {
		end = len(s.t.lines)
	}
	for j := range s.tokens {
		other := &s.tokens[j]
		if other.line >= end {
			break
		}
		if j >= maxSole {
			return false
		}
		if j != i && other.value != tok.value && (len(other.value) >= len(tok.value) || len(other.value) > minShort && s.standsAlone(other)) && !s.isDated(other) {
			if seen := s.lookBefore(j); !seen.other && (s.tokens[j].shape.isDigits() == tok.shape.isDigits() || seen.score > 0 || seen.asked || s.standsAlone(other)) {
				return false
			}
		}
	}
	return true
}

// maxSole is the maximum number of tokens before the footer for isSole.
const maxSole = 12

// isDated reports whether a token is the year of a date such as "18 December
// 2026".
func (s *codeScorer) isDated(tok *codeToken) bool {
	if !isYear(tok.value) || s.isPointedAt(tok) {
		return false
	}
	start := s.t.lines[tok.line].start
	return plaintext.HasDigit(s.t.text[max(start, tok.start-maxNamed):tok.start])
}

// shapeScore returns how much a token looks like a code. named reports that a
// noun or a verb directly precedes it, labelled that the noun is certainly one
// of sign-in or security.
func (s *codeScorer) shapeScore(tok *codeToken, named, labelled bool) int {
	switch tok.shape {
	case digitCode, groupCode:
		switch n := len(tok.value); {
		case n == 6:
			return 1
		case n == 3 && !s.isPointedAt(tok) && !s.standsAlone(tok):
			return -3
		case n == 3, n > 8:
			return -1
		case isYear(tok.value) && s.standsAlone(tok) && s.colonAbove(tok.line):
			return 0
		case isYear(tok.value) && labelled && (s.isPointedAt(tok) || s.isFollowed(tok)):
			return 0
		case isYear(tok.value) && (labelled || named && s.isPointedAt(tok) && !s.isSaid(tok)):
			return -1
		case isYear(tok.value) && s.isSaid(tok):
			if named {
				return 0
			}
			return -1
		case isYear(tok.value) && (s.standsAlone(tok) || s.isFollowed(tok) && s.beginsSentence(tok)):
			return -1
		case isYear(tok.value) && (named || s.isPointedAt(tok)):
			return -2
		case isYear(tok.value):
			return -3
		}
	case shortCode:
		if s.isPointedAt(tok) && named && s.endsLine(tok) && isInterleaved(tok.value) {
			return 0 // "K7P3", but not "GA20"
		}
		if s.isPointedAt(tok) || s.standsAlone(tok) || named && isInterleaved(tok.value) {
			return -1
		}
		return -3
	case splitCode:
		if s.standsAlone(tok) || s.isPointedAt(tok) || named && s.endsClause(tok) || s.isFollowed(tok) {
			return 0
		}
		if named {
			return -1
		}
		return -4
	case caseCode, groupedCode, unevenCode:
		if s.standsAlone(tok) || s.isPointedAt(tok) || s.isFollowed(tok) && s.beginsSentence(tok) {
			return 0
		}
		if named {
			return -1
		}
		return -4
	case prefixCode:
		if named || s.standsAlone(tok) || s.isPointedAt(tok) || s.isFollowed(tok) && s.beginsSentence(tok) {
			return 0
		}
		return -3
	case mixedCode:
		if strings.Contains(tok.value, "-") && len(onlyDigits(tok.value)) == 1 && !s.isPointedAt(tok) && !s.standsAlone(tok) && !s.isFollowed(tok) {
			return -3 // "HMAC-SHA1"
		}
	case lowerCode:
		if s.isPointedAt(tok) || s.standsAlone(tok) && s.colonAbove(tok.line) {
			return 0
		}
		if isHex(tok.value) && s.afterParenthesis(tok) {
			return -3 // a commit: "(a81f002)"
		}
		return -1
	case wordCode:
		if s.standsAlone(tok) && s.colonAbove(tok.line) {
			return 0
		}
		return -1
	case letterCode:
		if vowels(tok.value) == 0 && s.standsAlone(tok) || labelled && s.isPointedAt(tok) {
			return 0
		}
		if len(tok.value) < minLetters && !s.isPointedAt(tok) {
			return -3
		}
		if strings.Contains(tok.value, "-") || vowels(tok.value) == 0 && (named || s.isPointedAt(tok)) {
			return -1
		}
		return -2
	}
	return 0
}

// isPointedAt reports whether a colon or "is" precedes a token.
func (s *codeScorer) isPointedAt(tok *codeToken) bool {
	before := s.before(tok)
	return plaintext.EndsWithColon(before) || endsInCopula(before) || s.followsLabel(tok)
}

// followsLabel reports whether a token begins the second cell of a table row
// without other numbers.
func (s *codeScorer) followsLabel(tok *codeToken) bool {
	l := s.t.lines[tok.line]
	label := strings.TrimRight(s.t.text[l.start:tok.start], "*_")
	return tok.start-l.start <= maxGap/2 && strings.HasSuffix(label, "\t") && strings.Count(label, "\t") == 1 && hasLetter(label) && !plaintext.HasDigit(label)
}

// isLabelled reports whether a line consists of a short label, a colon and the
// token, as in "Security code: KXQ-WRT".
func (s *codeScorer) isLabelled(tok *codeToken) bool {
	l := s.t.lines[tok.line]
	return tok.start-l.start <= maxGap/2 && strings.TrimSpace(s.t.text[tok.end:l.end]) == "" && plaintext.EndsWithColon(s.before(tok)) &&
		(tok.shape != letterCode || len(tok.value) > minLetters)
}

// isSaid is isPointedAt for "is" only. A colon may belong to another label.
func (s *codeScorer) isSaid(tok *codeToken) bool {
	return endsInCopula(strings.TrimRight(s.before(tok), ": "))
}

// before returns the text of the line before a token, without trailing marks.
func (s *codeScorer) before(tok *codeToken) string {
	return strings.TrimRight(s.t.text[s.t.lines[tok.line].start:tok.start], " \t*[_`\"'(")
}

// maxUnit is longer, in bytes, than any unit and the letter after it.
const maxUnit = 40

// isAmount reports whether a unit follows the token.
func (s *codeScorer) isAmount(tok *codeToken) bool {
	l := s.t.lines[tok.line]
	rest := strings.TrimPrefix(s.t.text[tok.end:l.end], " ")
	return knownUnits().match(lowerInPlace(plaintext.Truncate(rest, maxUnit)), false) != nil
}

// takenBefore reports whether a possible code lies between pos and token i: a
// word describes the first number after it.
func (s *codeScorer) takenBefore(i, pos int) bool {
	for j := i - 1; j >= 0 && s.tokens[j].start >= pos; j-- {
		if tok := &s.tokens[j]; tok.value != "" && (tok.shape != shortCode || tok.start-pos <= maxCopula) {
			return true
		}
	}
	return false
}

// takenAfter is takenBefore for the tokens between i and pos.
func (s *codeScorer) takenAfter(i, pos int) bool {
	for j := i + 1; j < len(s.tokens) && s.tokens[j].start < pos; j++ {
		if s.tokens[j].value != "" && s.tokens[j].shape != shortCode {
			return true
		}
	}
	return false
}

// lastBefore returns the index of the last word that ends at or before pos, or
// -1.
func lastBefore(words []codeWord, pos int) int {
	lo, hi := 0, len(words)
	for lo < hi {
		if mid := (lo + hi) / 2; words[mid].end <= pos {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// endsSentence reports whether a sentence ends between two positions.
func (t *codeText) endsSentence(from, to int) bool {
	text := t.text[from:to]
	for i := range len(text) {
		switch text[i] {
		case '.', '!', '?':
			if i+2 <= len(text) && text[i+1] == ' ' {
				next, _ := utf8.DecodeRuneInString(t.text[from+i+2:])
				if next >= utf8.RuneSelf && !unicode.IsLower(next) || 'A' <= next && next <= 'Z' || unicode.IsDigit(next) && t.endsWord(from+i) {
					return true
				}
			}
		case 0xe3, 0xe0: // the first byte of the Chinese or Hindi full stop
			if strings.HasPrefix(text[i:], "。") || strings.HasPrefix(text[i:], "।") {
				return true
			}
		}
	}
	return false
}

// endsWord reports whether the full stop at pos follows a number or a whole
// word, rather than an abbreviation such as "No." or "ref.".
func (t *codeText) endsWord(pos int) bool {
	if t.text[pos] != '.' {
		return true
	}
	at := pos
	for at > 0 && pos-at <= maxAbbreviation && (plaintext.IsAlnum(t.text[at-1]) || t.text[at-1] >= utf8.RuneSelf) {
		at--
	}
	return pos-at > maxAbbreviation || at < pos && plaintext.IsDigit(t.text[pos-1])
}

// maxAbbreviation is the maximum length, in bytes, of an abbreviation before a
// number.
const maxAbbreviation = 4

// beginsSentence reports whether no word precedes a token in its sentence.
func (s *codeScorer) beginsSentence(tok *codeToken) bool {
	l := s.t.lines[tok.line]
	before := strings.TrimRight(s.t.text[l.start:tok.start], " \t\"'*([{<")
	if len(before) == 0 {
		return true
	}
	switch before[len(before)-1] {
	case '.', '!', '?', ':', ']', '>', '|':
		return true
	}
	return strings.HasSuffix(before, "—") || strings.HasSuffix(before, "】") || strings.HasSuffix(before, " -") || !hasLetter(before)
}

func (s *codeScorer) beginsLine(tok *codeToken) bool {
	return !hasLetter(s.t.text[s.t.lines[tok.line].start:tok.start])
}

// standsAlone reports whether a token is alone on its line.
func (s *codeScorer) standsAlone(tok *codeToken) bool {
	l := s.t.lines[tok.line]
	return !hasLetter(s.t.text[l.start:tok.start]) && !hasLetter(s.t.text[tok.end:l.end])
}

// colonAbove reports whether the line above ends with a colon, as in "Your
// code:".
func (s *codeScorer) colonAbove(line int) bool {
	if line == 0 {
		return false
	}
	l := s.t.lines[line-1]
	return plaintext.EndsWithColon(strings.TrimRight(s.t.text[l.start:l.end], " \t\r"))
}

// maxBare limits the bytes that hasLetter reads. A longer text without letters
// is a drawing, not part of a line with a code. Every token of a line may check
// the whole line, so reading all of it would take quadratic time.
const maxBare = 1 << 10

// hasLetter reports whether text has a letter or digit. It returns true for
// every text longer than maxBare.
func hasLetter(text string) bool {
	if len(text) > maxBare {
		return true
	}
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return true
		}
	}
	return false
}
