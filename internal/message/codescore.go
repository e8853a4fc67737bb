package message

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The least score of a code, and of one that is surely meant to be typed in.
const (
	codeScore = 5
	otpScore  = 6
)

// scoredCode is a code with the reasons for it, as a number.
type scoredCode struct {
	value string
	score int
}

// subjectHint is what the subject says about the numbers in the text.
type subjectHint struct {
	noun, qualifier, elsewhere bool
}

// codeScorer weighs the tokens of one text.
type codeScorer struct {
	t         *codeText
	tokens    []codeToken
	hint      subjectHint
	inSubject bool
}

// codes returns the tokens that the words around them make codes.
func (s *codeScorer) codes() []scoredCode {
	var found []scoredCode
	for i := range s.tokens {
		if s.tokens[i].value == "" {
			continue
		}
		if score := s.score(i); score >= codeScore {
			found = append(found, scoredCode{s.tokens[i].value, score})
		}
	}
	return found
}

// score weighs token i.
func (s *codeScorer) score(i int) int {
	tok := &s.tokens[i]
	if s.isAmount(tok) {
		return 0
	}
	before := s.lookBefore(i)
	if before.other {
		return 0
	}
	best := before.score
	after := s.lookAfter(i)
	best = max(best, after.score)
	lines := s.lookAround(i)
	best = max(best, lines.score)
	weak := before.weak || after.weak || lines.weak
	if weak && s.opensElse(tok.line) {
		return 0
	}
	qualified := s.hint.qualifier || before.qualified || after.qualified || lines.qualified
	if before.verb {
		best += 2
		if best == 2 && (before.qualified || after.qualified || s.hint.noun) {
			best += 2
		}
	}
	if best == 0 {
		return 0
	}
	if qualified {
		best++
	}
	if s.inSubject {
		best++
	}
	return best + s.shapeScore(tok)
}

// shapeScore says how much a token looks like a code.
func (s *codeScorer) shapeScore(tok *codeToken) int {
	switch tok.shape {
	case digitCode, groupCode:
		switch n := len(tok.value); {
		case n == 6:
			return 1
		case n == 3:
			return -3
		case n > 8:
			return -1
		case isYear(tok.value):
			return -3
		}
	case lowerCode, wordCode:
		return -1
	case letterCode:
		if strings.Contains(tok.value, "-") {
			return -1
		}
		return -2
	}
	return 0
}

// maxUnit is longer than any unit, in bytes, with the letter after it.
const maxUnit = 40

// isAmount reports whether a unit follows.
func (s *codeScorer) isAmount(tok *codeToken) bool {
	l := s.t.lines[tok.line]
	rest := strings.TrimPrefix(s.t.text[tok.end:l.end], " ")
	return knownUnits().match(lowerInPlace(head(rest, maxUnit)), false) != nil
}

// maxGap is how far a word may be from the number it speaks of, in strings.
const maxGap = 160

// evidence is what the words on one side say.
type evidence struct {
	score     int
	weak      bool // the noun is a weak one
	other     bool // the number names something else
	verb      bool // "enter" stands right before
	qualified bool
}

// lookBefore reads the words before token i in its sentence, backwards.
func (s *codeScorer) lookBefore(i int) (e evidence) {
	tok := &s.tokens[i]
	words := s.t.wordsOf(tok.line)
	for w := lastBefore(words, tok.start); w >= 0; w-- {
		word := words[w]
		gap := tok.start - word.end
		if gap > maxGap || s.endsSentence(word.end, tok.start) {
			return e
		}
		switch word.kind {
		case qualifier:
			e.qualified = true
		case useVerb:
			e.verb = e.verb || gap <= 24
		case codeNoun, weakNoun:
			if e.score == 0 && !s.takenBefore(i, word.end) {
				e.score = nounScore(word.kind, gap)
				e.weak = word.kind == weakNoun
			}
		case otherThing:
			if e.score == 0 && !hasDigit(s.t.text[word.end:tok.start]) {
				e.other = true
				return e
			}
		case softThing:
			// "account 4711", but not "code number 4711" or "your account: 4711".
			ofCode := w > 0 && words[w-1].kind == codeNoun && word.start-words[w-1].end <= 2
			if e.score == 0 && gap <= 12 && !ofCode && !strings.Contains(s.t.text[word.end:tok.start], ":") {
				e.other = true
				return e
			}
		}
	}
	return e
}

func nounScore(kind wordKind, gap int) int {
	score := 6
	if kind == weakNoun {
		score--
	}
	switch {
	case gap > 90:
		score -= 2
	case gap > 40:
		score--
	}
	return score
}

// lookAfter reads the words after token i in its sentence: "123456 is your
// code".
func (s *codeScorer) lookAfter(i int) (e evidence) {
	tok := &s.tokens[i]
	words := s.t.wordsOf(tok.line)
	for w := lastBefore(words, tok.start) + 1; w < len(words); w++ {
		word := words[w]
		gap := word.start - tok.end
		if gap < 0 {
			continue
		}
		if gap > maxGap/2 || s.endsSentence(tok.end, word.start) || s.takenAfter(i, word.start) {
			return e
		}
		switch word.kind {
		case qualifier:
			e.qualified = true
		case codeNoun, weakNoun:
			e.score = nounScore(word.kind, gap)
			e.weak = word.kind == weakNoun
			if !s.beginsSentence(tok) {
				e.score -= 3
			}
			return e
		case otherThing:
			return e
		}
	}
	return e
}

// lookAround reads the lines above and below a token that stands on a line of
// its own, or begins one after a colon.
func (s *codeScorer) lookAround(i int) (e evidence) {
	tok := &s.tokens[i]
	alone := s.standsAlone(tok)
	if !alone && !(s.beginsLine(tok) && s.colonAbove(tok.line)) {
		return e
	}
	for up := 1; up <= 3 && tok.line-up >= 0; up++ {
		line := tok.line - up
		noun, verb := s.lineNoun(line, &e)
		if noun.kind != noWord && !s.takenBefore(i, noun.end) {
			e.score = nounScore(noun.kind, 0) + 1 - up
			e.weak = noun.kind == weakNoun
			break
		}
		if verb && e.qualified && up == 1 {
			e.score = 4
		}
	}
	if !alone {
		return e
	}
	if next := tok.line + 1; e.score < 5 && next < len(s.t.lines) && !s.inSubject {
		if words := s.t.wordsOf(next); len(words) > 0 {
			if noun, _ := s.lineNoun(next, &e); noun.kind == codeNoun && words[0].start-s.t.lines[next].start < 40 {
				e.score = max(e.score, 5)
			}
		}
	}
	if s.hint.noun {
		e.score = max(e.score, 4)
	}
	if e.score > 0 {
		e.score++
	}
	return e
}

// lineNoun returns the last code noun of a line and whether a verb asks to
// type something in.
func (s *codeScorer) lineNoun(line int, e *evidence) (noun codeWord, verb bool) {
	for _, w := range s.t.wordsOf(line) {
		switch w.kind {
		case codeNoun, weakNoun:
			noun = w
		case useVerb:
			verb = true
		case qualifier:
			e.qualified = true
		}
	}
	return noun, verb
}

// opensElse reports whether the subject or the lines about a token speak of
// what has a PIN or a password of its own.
func (s *codeScorer) opensElse(line int) bool {
	if s.hint.elsewhere {
		return true
	}
	for i := max(0, line-2); i <= min(line+1, len(s.t.lines)-1); i++ {
		for _, w := range s.t.wordsOf(i) {
			if w.kind == elsewhere {
				return true
			}
		}
	}
	return false
}

// takenBefore reports whether an earlier token than i, at pos or behind it, can
// be a code: a word speaks of the first number that follows it.
func (s *codeScorer) takenBefore(i, pos int) bool {
	for j := i - 1; j >= 0 && s.tokens[j].start >= pos; j-- {
		if s.tokens[j].value != "" {
			return true
		}
	}
	return false
}

// takenAfter is takenBefore for the tokens between i and pos.
func (s *codeScorer) takenAfter(i, pos int) bool {
	for j := i + 1; j < len(s.tokens) && s.tokens[j].start < pos; j++ {
		if s.tokens[j].value != "" {
			return true
		}
	}
	return false
}

// lastBefore returns the index of the last word that ends at or before pos.
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
func (s *codeScorer) endsSentence(from, to int) bool {
	text := s.t.text[from:to]
	for i := range len(text) {
		switch text[i] {
		case '.', '!', '?':
			if i+2 <= len(text) && text[i+1] == ' ' {
				next := s.t.text[from+i+2]
				if 'A' <= next && next <= 'Z' || next >= utf8.RuneSelf {
					return true
				}
			}
		case 0xe3: // 。 in UTF-8 is e3 80 82
			if strings.HasPrefix(text[i:], "。") {
				return true
			}
		}
	}
	return false
}

// beginsSentence reports whether no word stands before a token in its sentence.
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
	return !hasLetter(before)
}

func (s *codeScorer) beginsLine(tok *codeToken) bool {
	return !hasLetter(s.t.text[s.t.lines[tok.line].start:tok.start])
}

// standsAlone reports whether a line holds nothing but a token.
func (s *codeScorer) standsAlone(tok *codeToken) bool {
	l := s.t.lines[tok.line]
	return !hasLetter(s.t.text[l.start:tok.start]) && !hasLetter(s.t.text[tok.end:l.end])
}

// colonAbove reports whether the line above ends like "Your code:".
func (s *codeScorer) colonAbove(line int) bool {
	if line == 0 {
		return false
	}
	l := s.t.lines[line-1]
	return endsWithColon(strings.TrimRight(s.t.text[l.start:l.end], " \t\r"))
}

// hasLetter reports whether text has a letter or a digit.
func hasLetter(text string) bool {
	for _, r := range text {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return true
		}
	}
	return false
}

func hasDigit(text string) bool {
	return strings.IndexAny(text, "0123456789") >= 0
}
