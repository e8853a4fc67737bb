package extract

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// maxGap is the maximum distance between a word and the number it describes, in
// bytes.
const maxGap = 160

// evidence is what the words on one side of a token say about it.
type evidence struct {
	score     int
	weak      bool // the noun is not a plain "code"
	open      bool // the noun is one such as "confirmation code"
	other     bool // the number names something else
	verb      bool // "enter" is near, before the token
	verbAfter bool // it directly follows: "123456 - use this to sign in"
	qualified bool
	asked     bool // "use" directly precedes
	thing     bool // a word after the token names something else
	verbNext  bool // a verb directly follows, as in verb-final languages
	close     bool // the noun directly precedes, or only "is" is between
	named     int  // the penalty for an unknown name of the noun
	label     bool // the name and a colon follow the noun
}

// take records a noun at a distance of gap bytes.
func (e *evidence) take(kind wordKind, gap int) {
	e.score = nounScore(kind, gap)
	e.weak, e.open = kind != codeNoun, kind == openNoun
	e.qualified = e.qualified || kind == openNoun
}

// lookBefore evaluates the words before token i in its sentence, from right to
// left.
func (s *codeScorer) lookBefore(i int) (e evidence) {
	tok := &s.tokens[i]
	words := s.t.wordsOf(tok.line)
	told := false // a verb that asks for it directly precedes
	for w := lastBefore(words, tok.start); w >= 0; w-- {
		word := words[w]
		gap := tok.start - word.end
		if gap > maxGap || s.t.endsSentence(word.end, tok.start) {
			if noun := s.meantNoun(tok, words[:w+1]); e.score == 0 && noun != noWord {
				e.take(noun, 0)
			}
			return e
		}
		switch word.kind {
		case qualifier:
			e.qualified = true
		case useVerb:
			if s.isName(word, tok.line) {
				continue // "CA 94043, USA"
			}
			if wordSets().refusal[lastLetters(strings.TrimRight(s.t.text[s.t.lines[tok.line].start:word.start], " "))] {
				continue // "do not use 123456"
			}
			e.verb = e.verb || gap <= 24
			if (gap <= maxAsked || gap <= maxGap/4 && plaintext.EndsWithColon(s.before(tok))) && !s.takenBefore(i, word.end) {
				e.asked = true
				told = told || gap <= maxAsked && !isCopula(lowerInPlace(s.t.text[word.start:word.end]))
			}
		case codeNoun, weakNoun, openNoun:
			if e.score == 0 && !s.takenFrom(i, word.end) && !s.claimed(i, word) && !(gap > maxCopula && s.nextSaid(i)) && !s.isRemark(tok, word) {
				e.take(word.kind, gap)
				if word.kind != codeNoun && w > 0 && words[w-1].kind == qualifier && word.start-words[w-1].end <= 1 {
					e.weak, e.open = false, false // "sign-in PIN", "one-time authorization code"
				}
				e.close = gap <= maxCopula && !s.isTicketAside(tok) || s.onlyQualified(words[w:], tok)
				e.score -= s.farther(tok, word, gap)
				if s.countsCodes(i, word) {
					e.score -= 4
				}
				e.named, e.label = s.t.namedElse(s.t.lines[tok.line], word, tok.start)
			}
		case otherThing:
			if e.score == 0 && !told && !plaintext.HasDigit(s.t.text[word.end:tok.start]) && !s.isAside(tok, words[:w+1]) {
				e.other = true
				return e
			}
		case ofShop:
			if e.score == 0 && gap <= 16 {
				e.other = true
				return e
			}
		case softThing:
			// "account 4711", but not "code number 4711" or "your account: 4711".
			ofCode := w > 0 && words[w-1].kind.isNoun() && words[w-1].kind != weakNoun && word.start-words[w-1].end <= 2
			ofCode = ofCode || s.isSaid(tok) && s.hasNoun(words[:w], word.start) || s.inParentheses(tok, word) // "the code for your card is 4711"
			if e.score == 0 && gap <= maxAsked && s.isAskedNumber(words[:w+1]) && !s.takenBefore(i, word.end) {
				e.verb, e.asked = true, true // "enter the number 4711"
				continue
			}
			if e.score == 0 && gap <= 12 && !ofCode && !e.asked && !strings.ContainsAny(s.t.text[word.end:tok.start], ":0123456789") {
				e.other = true
				return e
			}
		}
	}
	return e
}

// isName reports whether a short verb is in capitals and the text around it is not:
// USA, a verb in Spanish, is then a country.
func (s *codeScorer) isName(verb codeWord, line int) bool {
	text, l := s.t.text[verb.start:verb.end], s.t.lines[line]
	around := s.t.text[max(l.start, verb.start-maxNamed):min(l.end, verb.end+maxNamed)]
	return len(text) <= 3 && text != "USE" && strings.ToUpper(text) == text && strings.ToLower(text) != text && strings.IndexFunc(around, unicode.IsLower) >= 0
}

// meantNoun returns the kind of the noun that "it" stands for if the sentence of a
// token is "It is 482913". The noun is in the sentence before, which ends with the
// last of words.
func (s *codeScorer) meantNoun(tok *codeToken, words []codeWord) wordKind {
	last := words[len(words)-1].end
	if tok.start-last > maxGap {
		return noWord
	}
	between := s.t.text[last:tok.start]
	at := strings.LastIndexAny(between, ".!?,")
	if at < 0 || plaintext.HasDigit(between) || !wordSets().pronoun[strings.Trim(lowerInPlace(between[at+1:]), " :*_\"")] {
		return noWord
	}
	for w := len(words) - 1; w >= 0 && tok.start-words[w].end <= maxGap && !s.t.endsSentence(words[w].end, last); w-- {
		if words[w].kind.isNoun() && !plaintext.HasDigit(s.t.text[words[w].end:last]) {
			return words[w].kind
		}
	}
	return noWord
}

// isRemark reports whether a token is in parentheses that begin after a noun and
// contain other words: "your code for Acme (tenant 20048812)".
func (s *codeScorer) isRemark(tok *codeToken, noun codeWord) bool {
	between := s.t.text[noun.end:tok.start]
	open := strings.LastIndexAny(between, "()")
	return open >= 0 && between[open] == '(' && hasLetter(between[open:])
}

// isAside reports whether the last of words, which names something else, does
// not name token tok after all.
func (s *codeScorer) isAside(tok *codeToken, words []codeWord) bool {
	word := words[len(words)-1]
	switch {
	case s.inParentheses(tok, word): // "your code (case sensitive): K7Q2X9"
		return true
	case s.isPointedAt(tok) && s.isUnit(word):
		return true
	case s.isSaid(tok) && s.hint.noun && s.hasNoun(words[:len(words)-1], word.start): // "the code for your order is 4711"
		return true
	}
	return strings.TrimSpace(s.t.text[word.end:tok.start]) == "," && s.isFollowed(tok) // "dear customer, 4711 is"
}

// onlyQualified reports whether only a qualifier stands between the first of
// words, a noun, and a token: "senha provisória 4711", "code de sécurité : 4711".
func (s *codeScorer) onlyQualified(words []codeWord, tok *codeToken) bool {
	if len(words) < 2 || words[1].kind != qualifier || words[1].start-words[0].end > maxJoint {
		return false
	}
	gap := tok.start - words[1].end
	return gap > 0 && gap <= maxCopula
}

// maxJoint is the maximum length, in bytes, of " de " between a noun and its
// qualifier.
const maxJoint = 4

// isAskedNumber reports whether the last of words is "number" and directly follows
// a verb that asks for it.
func (s *codeScorer) isAskedNumber(words []codeWord) bool {
	n := len(words) - 1
	return n > 0 && words[n-1].kind == useVerb && words[n].start-words[n-1].end <= maxAsked && wordSets().number[lowerInPlace(s.t.text[words[n].start:words[n].end])]
}

// inParentheses reports whether a word is in parentheses that end before a
// token.
func (s *codeScorer) inParentheses(tok *codeToken, word codeWord) bool {
	at := strings.IndexAny(s.t.text[word.end:tok.start], "()")
	return at >= 0 && s.t.text[word.end+at] == ')'
}

// nextSaid reports whether "is" precedes the next possible code after token i in
// its sentence: "the code for contract 4417 is 8820". A code noun then describes
// that one.
func (s *codeScorer) nextSaid(i int) bool {
	if i+1 == len(s.tokens) || s.isPointedAt(&s.tokens[i]) {
		return false
	}
	tok, next := &s.tokens[i], &s.tokens[i+1]
	return next.line == tok.line && next.value != "" && next.start-tok.end <= maxGap/4 && s.isSaid(next) && !s.t.endsSentence(tok.end, next.start) &&
		!strings.ContainsAny(s.t.text[tok.end:next.start], ",;")
}

// hasNoun reports whether the last noun of words is in the sentence of pos and no
// number is between.
func (s *codeScorer) hasNoun(words []codeWord, pos int) bool {
	for w := len(words) - 1; w >= 0 && pos-words[w].end <= maxGap/2; w-- {
		if words[w].kind.isNoun() {
			return !plaintext.HasDigit(s.t.text[words[w].end:pos]) && !s.t.endsSentence(words[w].end, pos)
		}
	}
	return false
}

// isUnit reports whether a word is the unit of the number before it: in "the
// code for the payment of 124.90 EUR: 902417", the code is not in euros.
func (s *codeScorer) isUnit(word codeWord) bool {
	before := strings.TrimSuffix(s.t.text[:word.start], " ")
	return before != "" && plaintext.IsDigit(before[len(before)-1]) && knownUnits().match(strings.ToLower(s.t.text[word.start:word.end]), false) != nil
}

// maxAsked and maxVerbNext are the maximum lengths, in bytes, of the text
// between a number and the verb that asks for it: an article after the verb, or
// a particle before it.
const (
	maxAsked    = 5
	maxVerbNext = 12
)

// takenFrom is takenBefore, but if "is" precedes token i, it counts only numbers
// that directly follow the noun or another "is". Others belong to words between:
// "the code for card 4410 is 58213".
func (s *codeScorer) takenFrom(i, pos int) bool {
	if !s.isSaid(&s.tokens[i]) {
		return s.takenBefore(i, pos)
	}
	for j := i - 1; j >= 0 && s.tokens[j].start >= pos; j-- {
		if tok := &s.tokens[j]; tok.value != "" && tok.shape != shortCode && (tok.start-pos <= maxCopula && !s.isSum(tok) || s.isSaid(tok)) {
			return true
		}
	}
	return false
}

// isSum reports whether the name of a currency precedes a token: "OTP for Rs 499".
func (s *codeScorer) isSum(tok *codeToken) bool {
	words := s.t.wordsOf(tok.line)
	w := lastBefore(words, tok.start)
	return w >= 0 && words[w].kind == otherThing && tok.start-words[w].end <= 1
}

// maxNear is the distance, in characters, up to which a noun before its number
// needs no word that connects them.
const maxNear = 40

// farther returns the penalty for the distance between a noun and the number
// that it may describe. "The code ... is 482913" is certain at any distance. A
// plural such as "codes" describes only a number that closely follows.
func (s *codeScorer) farther(tok *codeToken, noun codeWord, gap int) int {
	switch {
	case gap <= maxNear || utf8.RuneCountInString(s.t.text[noun.end:tok.start]) <= maxNear:
		return 0
	case s.isSaid(tok):
		return nounScore(noun.kind, gap) - nounScore(noun.kind, 0)
	case isPlural(s.t.text[noun.start:noun.end]):
		return 3
	case !s.isPointedAt(tok):
		return 2
	}
	return 0
}

// isPlural reports whether a noun is plural, in languages whose plural ends in
// "s".
func isPlural(noun string) bool {
	return len(noun) >= len("codes") && noun[len(noun)-1] == 's' && noun[len(noun)-2] != 's'
}

// claimed reports whether a noun describes the token before token i: "604418 is
// your code for the transfer to 5521".
func (s *codeScorer) claimed(i int, noun codeWord) bool {
	if s.tokens[i].start-noun.end <= maxCopula {
		return false
	}
	for j := i - 1; j >= 0 && s.tokens[j].line == s.tokens[i].line; j-- {
		if tok := &s.tokens[j]; tok.end <= noun.start {
			return tok.value != "" && s.isFollowed(tok) && s.beginsSentence(tok) && !s.t.endsSentence(tok.end, noun.start)
		}
	}
	return false
}

// isFollowed reports whether "is" follows a token.
func (s *codeScorer) isFollowed(tok *codeToken) bool {
	rest := plaintext.Truncate(s.t.text[tok.end:s.t.lines[tok.line].end], maxNamed)
	word, _, _ := strings.Cut(strings.TrimLeft(rest, " *_`\"'"), " ")
	return isCopula(strings.ToLower(word))
}

// nextClaims reports whether the noun that ends at pos describes the next token
// after i, which directly follows it: "for your card 5521 the code is 604418".
func (s *codeScorer) nextClaims(i, pos int) bool {
	for j := i + 1; j < len(s.tokens); j++ {
		next := &s.tokens[j]
		if next.start < pos {
			continue
		}
		return next.value != "" && !isYear(next.value) && next.start-pos <= maxCopula && !s.t.endsSentence(pos, next.start) &&
			next.line == s.tokens[i].line
	}
	return false
}

// isCount reports whether a number counts codes, as in "1200 leaked passcodes",
// but not in "482913 and 120448 are your codes".
func (s *codeScorer) isCount(tok *codeToken, noun codeWord) bool {
	if !isPlural(s.t.text[noun.start:noun.end]) {
		return false
	}
	for word := range strings.FieldsSeq(s.t.text[tok.end:noun.start]) {
		if isCopula(strings.ToLower(word)) {
			return false
		}
	}
	return true
}

// countsCodes reports whether token i is the only number after "codes:", as in
// "Logins with one-time codes: 120448".
func (s *codeScorer) countsCodes(i int, noun codeWord) bool {
	if !isPlural(s.t.text[noun.start:noun.end]) || !plaintext.EndsWithColon(s.before(&s.tokens[i])) {
		return false
	}
	return s.tokens[i].shape == digitCode && (i+1 == len(s.tokens) || s.tokens[i+1].line > s.tokens[i].line+1)
}

// isTicket reports whether a token looks like an issue key: "SEC-4481".
func isTicket(token string) bool {
	first, last, ok := strings.Cut(token, "-")
	return ok && !plaintext.HasDigit(first) && strings.Trim(last, "0123456789") == ""
}

// isTicketAside reports whether a token looks like an issue key and is in
// parentheses, as in "fix the OTP flow (SEC-4481)".
func (s *codeScorer) isTicketAside(tok *codeToken) bool {
	return tok.shape == prefixCode && s.afterParenthesis(tok)
}

// maxCopula is the maximum length, in bytes, of the text between a noun and its
// number: " is ", ": ", " lautet ".
const maxCopula = 8

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

// lookAfter evaluates the words after token i in its sentence: "123456 is your
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
		if gap > maxGap/2 || s.takenAfter(i, word.start) {
			return e
		}
		if s.t.endsSentence(tok.end, word.start) {
			if e.score == 0 && s.isPointedAt(tok) && s.callsItCode(tok, words[w:]) {
				e.score = codeScore
			}
			return e
		}
		switch word.kind {
		case qualifier:
			e.qualified = true
		case codeNoun, weakNoun, openNoun:
			if e.score > 0 {
				continue
			}
			if s.nextClaims(i, word.end) || s.isCount(tok, word) || isTicket(tok.value) && !s.isFollowed(tok) {
				return e
			}
			e.take(word.kind, gap)
			if !s.beginsSentence(tok) && !(s.isFollowed(tok) && strings.HasSuffix(s.before(tok), ",")) { // "Dear Ann, 4711 is"
				e.score -= 3
			}
		case useVerb:
			if s.isName(word, tok.line) {
				continue
			}
			e.verbAfter = e.verbAfter || gap <= 16 && s.beginsSentence(tok)
			e.verbNext = e.verbNext || gap <= maxVerbNext && s.t.text[tok.end] != ','
		case otherThing:
			e.thing = true
			return e
		case softThing:
			e.thing = e.thing || !wordSets().number[lowerInPlace(s.t.text[word.start:word.end])]
		}
	}
	return e
}

// maxCalls is how many words callsItCode reads.
const maxCalls = 3

// callsItCode reports whether the sentence after a token, which begins before
// words, calls the token a code: "Your PAC is 482913. Give this code to your new
// provider."
func (s *codeScorer) callsItCode(tok *codeToken, words []codeWord) bool {
	for _, w := range words[:min(len(words), maxCalls)] {
		between := s.t.text[tok.end:w.start]
		if len(between) > maxGap/2 || strings.LastIndexAny(between, ".!?") > 1 {
			return false
		}
		if w.kind == useVerb && s.hasObject(w, tok.line) {
			return true
		}
		if w.kind.isNoun() {
			return wordSets().this[lastLetters(strings.TrimRight(between, " "))] && !strings.HasPrefix(s.t.text[w.end:], ":")
		}
	}
	return false
}

// hasObject reports whether "it" follows a verb on a line: "enter it".
func (s *codeScorer) hasObject(verb codeWord, line int) bool {
	rest := plaintext.Truncate(s.t.text[verb.end:s.t.lines[line].end], maxCopula)
	word, _, _ := strings.Cut(strings.TrimLeft(rest, " -"), " ")
	return len(rest) > 0 && (rest[0] == ' ' || rest[0] == '-') && wordSets().object[strings.ToLower(strings.TrimRight(word, ".,:"))]
}

// lookAround evaluates the lines above and below a token that is alone on its
// line, or that begins a line below one that ends with a colon.
func (s *codeScorer) lookAround(i int) (e evidence) {
	tok := &s.tokens[i]
	alone := s.standsAlone(tok)
	if !alone && (!s.beginsLine(tok) || !s.colonAbove(tok.line)) {
		return s.columnHead(tok)
	}
	for up := 1; up <= 3 && tok.line-up >= 0; up++ {
		line := tok.line - up
		noun, verb := s.lineNoun(line, &e)
		if noun.kind != noWord && !s.takenBefore(i, noun.end) {
			e.take(noun.kind, 0)
			e.score += 1 - up
			break
		}
		if verb && up == 1 && (e.qualified || s.colonAbove(tok.line)) {
			e.score = 4
			if s.isSole(i) {
				e.score++
			}
		}
	}
	if !alone {
		return e
	}
	if next := tok.line + 1; e.score < 5 && next < len(s.t.lines) && !s.inSubject {
		if words := s.t.wordsOf(next); len(words) > 0 {
			if noun, _ := s.lineNoun(next, &e); (noun.kind == codeNoun || noun.kind == openNoun) && words[0].start-s.t.lines[next].start < 40 {
				e.score = max(e.score, 5)
			} else if words[0].kind == useVerb && words[0].start == s.t.lines[next].start && s.hasObject(words[0], next) && s.isSole(i) {
				e.score = max(e.score, 5) // "Enter it in the app."
			}
		}
	}
	if s.hint.noun {
		e.score = max(e.score, 4)
		if e.score == 4 && s.isSole(i) {
			e.score++
		}
	}
	if e.score > 0 {
		e.score++
	}
	return e
}

// maxRow is the maximum length, in bytes, of a table row whose cells are
// counted.
const maxRow = 500

// columnHead evaluates the cell above a token in a table.
func (s *codeScorer) columnHead(tok *codeToken) (e evidence) {
	if tok.line == 0 {
		return e
	}
	l, above := s.t.lines[tok.line], s.t.lines[tok.line-1]
	if l.end-l.start > maxRow || above.end-above.start > maxRow {
		return e
	}
	column := strings.Count(s.t.text[l.start:tok.start], "\t")
	if column == 0 && (tok.end == l.end || s.t.text[tok.end] != '\t') {
		return e
	}
	start := above.start
	for ; column > 0; column-- {
		next := strings.IndexByte(s.t.text[start:above.end], '\t')
		if next < 0 {
			return e
		}
		start += next + 1
	}
	cell, _, _ := strings.Cut(s.t.text[start:above.end], "\t")
	for _, w := range s.t.wordsOf(tok.line - 1) {
		if w.start >= start && w.end <= start+len(cell) && w.kind.isNoun() {
			e.take(w.kind, 0)
			e.named, _ = s.t.namedElse(above, w, w.end)
		}
	}
	return e
}

// lineNoun returns the last code noun of a line and whether a verb asks to
// enter something.
func (s *codeScorer) lineNoun(line int, e *evidence) (noun codeWord, verb bool) {
	for _, w := range s.t.wordsOf(line) {
		switch w.kind {
		case codeNoun, weakNoun, openNoun:
			noun = w
		case useVerb:
			verb = true
		case qualifier:
			e.qualified = true
		}
	}
	return noun, verb
}

// sells reports whether the subject or the lines near a token advertise goods,
// so that a code is probably a discount code.
func (s *codeScorer) sells(line int) bool {
	for i := max(0, line-2); i <= min(line+1, len(s.t.lines)-1); i++ {
		if s.t.line(i).sells {
			return true
		}
	}
	return s.hint.shop
}

// opensElse reports whether the subject or the lines near a token mention
// something that has a PIN or password of its own.
func (s *codeScorer) opensElse(line int) bool {
	for i := max(0, line-2); i <= min(line+1, len(s.t.lines)-1); i++ {
		if s.t.line(i).opens {
			return true
		}
	}
	return s.hint.elsewhere
}
