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
	noun, qualifier, elsewhere, shop bool
}

// codeScorer weighs the tokens of one text.
type codeScorer struct {
	t         *codeText
	tokens    []codeToken
	hint      subjectHint
	inSubject bool
}

// maxScored bounds the codes that are weighed of one text, many more than any
// mail has for its reader.
const maxScored = 4 * maxCodes

// codes returns the tokens that the words around them make codes.
func (s *codeScorer) codes() []scoredCode {
	var found []scoredCode
	for i := range s.tokens {
		if len(found) == maxScored {
			break
		}
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
			if before.asked {
				best++
			}
		}
	}
	if best == 0 && after.verbAfter && qualified {
		best = 5
	}
	if best == 0 || !qualified && s.sells(tok.line) || comparers[lastLetters(s.before(tok))] {
		return 0
	}
	switch {
	case qualified:
		best++
	default:
		best -= before.named
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
		case n == 3 && !s.isPointedAt(tok) && !s.standsAlone(tok):
			return -3
		case n == 3, n > 8:
			return -1
		case isYear(tok.value) && s.isPointedAt(tok):
			return -2
		case isYear(tok.value):
			return -3
		}
	case shortCode:
		if s.isPointedAt(tok) || s.standsAlone(tok) {
			return -1
		}
		return -3
	case lowerCode:
		if s.isPointedAt(tok) {
			return 0
		}
		return -1
	case wordCode:
		return -1
	case letterCode:
		if strings.Contains(tok.value, "-") || vowels(tok.value) == 0 && s.isPointedAt(tok) {
			return -1
		}
		return -2
	}
	return 0
}

// isPointedAt reports whether a colon or "is" stands before a token.
func (s *codeScorer) isPointedAt(tok *codeToken) bool {
	before := s.before(tok)
	return endsWithColon(before) || copulas[lastLetters(before)]
}

// isSaid is isPointedAt for "is" alone, which unlike a colon is not also the
// end of some other label.
func (s *codeScorer) isSaid(tok *codeToken) bool {
	return copulas[lastLetters(strings.TrimSuffix(s.before(tok), ":"))]
}

// before returns the line before a token without the marks that are set right
// before it.
func (s *codeScorer) before(tok *codeToken) string {
	return strings.TrimRight(s.t.text[s.t.lines[tok.line].start:tok.start], " \t*[_`\"'(")
}

// maxUnit is longer than any unit, in bytes, with the letter after it.
const maxUnit = 40

// isAmount reports whether a unit follows.
func (s *codeScorer) isAmount(tok *codeToken) bool {
	l := s.t.lines[tok.line]
	rest := strings.TrimPrefix(s.t.text[tok.end:l.end], " ")
	return knownUnits().match(lowerInPlace(head(rest, maxUnit)), false) != nil
}

// takenBefore reports whether an earlier token than i, at pos or behind it, can
// be a code: a word speaks of the first number that follows it.
func (s *codeScorer) takenBefore(i, pos int) bool {
	for j := i - 1; j >= 0 && s.tokens[j].start >= pos; j-- {
		if s.tokens[j].value != "" && s.tokens[j].shape != shortCode {
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
		case 0xe3, 0xe0: // the first bytes of the full stops of Chinese and Hindi
			if strings.HasPrefix(text[i:], "。") || strings.HasPrefix(text[i:], "।") {
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
	return strings.ContainsAny(text, "0123456789")
}
