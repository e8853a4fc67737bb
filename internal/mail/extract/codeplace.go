package extract

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// maxGap is the maximum distance, in bytes, between a number and the words that
// are read on each side of it.
const maxGap = 160

// codePlace is one place where a candidate for a code stands, with what its
// signs read.
type codePlace struct {
	m      *codeMessage
	t      *codeText
	tokens []codeToken
	tok    *codeToken
	i      int
	where  textPart
	value  *codeValue
	rank   int    // among the candidates of its part
	veto   string // what rules it out, or ""
	place  int    // where on its line it stands: standsAlone, ...

	before, after [kinds]distance // to the nearest word of each kind
	nearest       [2]wordKind     // the two nearest words before it
	from, to      int             // its sentence, at most maxGap on each side
	lead, rest    string          // the text of the line before and after it, without marks
	link          int             // what connects it with the words before it
}

// textPart is a part of a message with words.
type textPart int

const (
	inSubject textPart = 1 + iota
	inText
	inHTML
)

var textParts = []string{"subject", "text", "html"}

// distance is how far a word is from a number.
type distance uint8

const (
	_        distance = iota
	isNext            // at most 3 characters between
	isClose           // at most 12
	isNear            // at most 40
	isFar             // in the same sentence
	isBeyond          // in another sentence of the line
	isTaken           // with a candidate between
)

var distanceNames = []string{"next", "close", "near", "far", "beyond", "taken"}

func distanceOf(between string) distance {
	n := len(between)
	if n > 3 && n <= 2*maxGap {
		n = utf8.RuneCountInString(between)
	}
	switch {
	case n <= 3:
		return isNext
	case n <= 12:
		return isClose
	case n <= 40:
		return isNear
	}
	return isFar
}

// newPlace reads what is around token i.
func newPlace(m *codeMessage, t *codeText, tokens []codeToken, i int, where textPart) *codePlace {
	p := &codePlace{m: m, t: t, tokens: tokens, tok: &tokens[i], i: i, where: where}
	l := t.lines[p.tok.line]
	p.lead = strings.TrimRight(t.text[l.start:p.tok.start], " \t*[_`\"'(")
	p.rest = strings.TrimLeft(t.text[p.tok.end:l.end], " \t*]_`\"')\r")
	p.from, p.to = t.sentence(p.tok, l)
	p.link = p.linkBefore()
	p.readWords(l, -1, &p.before)
	p.readWords(l, 1, &p.after)
	return p
}

// readWords finds the nearest words of each kind on the line of the token: before it with a step
// of -1, after it with a step of 1.
func (p *codePlace) readWords(l codeLine, step int, found *[kinds]distance) {
	words := p.t.wordsOf(p.tok.line)
	end, taken, w := p.from, l.start, lastBefore(words, p.tok.start)
	if step > 0 {
		end, taken, w = p.to, l.end, w+1
	}
	for j := p.i + step; j >= 0 && j < len(p.tokens) && p.tokens[j].line == p.tok.line; j += step {
		if other := &p.tokens[j]; other.value != "" {
			if taken = other.end; step > 0 {
				taken = other.start
			}
			break
		}
	}
	seen := 0
	for ; w >= 0 && w < len(words); w += step {
		word := &words[w]
		from, to, near := word.end, p.tok.start, word.end
		if step > 0 {
			from, to, near = p.tok.end, word.start, word.start
		}
		if to-from > maxGap {
			break
		}
		if to < from || found[word.kind] != 0 || word.kind == useVerb && p.isName(word) {
			continue
		}
		d := distanceOf(p.t.text[from:to])
		switch {
		case step*near >= step*end:
			d = isBeyond
		case step*near >= step*taken:
			d = isTaken
		}
		found[word.kind] = d
		if step < 0 && seen < len(p.nearest) && d < isBeyond {
			p.nearest[seen] = word.kind
			seen++
		}
	}
}

// lastBefore returns the index of the last word that ends at or before pos, or
// -1.
func lastBefore(words []codeWord, pos int) int {
	return sort.Search(len(words), func(i int) bool { return words[i].end > pos }) - 1
}

// isName reports whether a short verb is in capitals and the text around it is
// not: USA, a verb in Spanish, is then a country.
func (p *codePlace) isName(verb *codeWord) bool {
	text, l := p.t.text[verb.start:verb.end], p.t.lines[p.tok.line]
	if len(text) > 3 || text == "USE" || strings.ToUpper(text) != text || strings.ToLower(text) == text {
		return false
	}
	around := p.t.text[max(l.start, verb.start-maxNamed):min(l.end, verb.end+maxNamed)]
	return strings.IndexFunc(around, unicode.IsLower) >= 0
}

// Values of codePlace.link.
const (
	_ = iota
	afterColon
	afterCopula
	afterCopulaColon
	afterLabel
)

var linkNames = []string{"colon", "is", "is and colon", "cell"}

// linkBefore returns what connects the token with the words before it: a colon,
// "is", or the border of a table cell.
func (p *codePlace) linkBefore() int {
	switch colon := plaintext.EndsWithColon(p.lead); {
	case endsInCopula(strings.TrimRight(p.lead, ": ")):
		if colon {
			return afterCopulaColon
		}
		return afterCopula
	case colon:
		return afterColon
	case p.followsLabel():
		return afterLabel
	}
	return 0
}

// followsLabel reports whether the token begins the second cell of a table row
// without other numbers.
func (p *codePlace) followsLabel() bool {
	l := p.t.lines[p.tok.line]
	if p.tok.start-l.start > maxGap/2 {
		return false
	}
	label := strings.TrimRight(p.t.text[l.start:p.tok.start], "*_")
	return strings.HasSuffix(label, "\t") && strings.Count(label, "\t") == 1 && hasLetter(label) && !plaintext.HasDigit(label)
}

// followedBy returns the lower-case word after the token.
func (p *codePlace) followedBy() string {
	word, _, _ := strings.Cut(strings.TrimLeft(plaintext.Truncate(p.rest, maxNamed), " *_`\"'"), " ")
	return strings.ToLower(word)
}

// sentence returns the start and the end of the sentence of a token on its line.
// It reads maxGap bytes on each side.
func (t *codeText) sentence(tok *codeToken, l codeLine) (from, to int) {
	from, to = max(l.start, tok.start-maxGap), min(l.end, tok.end+maxGap)
	for i := tok.start - 1; i >= from; i-- {
		if n := t.stopAt(i, tok.start); n > 0 {
			from = i + n
			break
		}
	}
	for i := tok.end; i < to; i++ {
		if t.stopAt(i, to) > 0 {
			to = i
			break
		}
	}
	return from, to
}

// stopAt returns the length of the full stop at a position if a sentence ends
// there, or 0. end is the end of the text to read.
func (t *codeText) stopAt(i, end int) int {
	switch t.text[i] {
	case '.', '!', '?':
		if i+2 <= end && t.text[i+1] == ' ' {
			next, _ := utf8.DecodeRuneInString(t.text[i+2:])
			if next >= utf8.RuneSelf && !unicode.IsLower(next) || 'A' <= next && next <= 'Z' || unicode.IsDigit(next) && t.endsWord(i) {
				return 1
			}
		}
	case 0xe3, 0xe0: // the first byte of the Chinese or Hindi full stop
		if strings.HasPrefix(t.text[i:end], "。") || strings.HasPrefix(t.text[i:end], "।") {
			return len("。")
		}
	}
	return 0
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

// beginsSentence reports whether no word precedes the token in its sentence.
func (p *codePlace) beginsSentence() bool {
	before := strings.TrimRight(p.t.text[p.t.lines[p.tok.line].start:p.tok.start], " \t\"'*([{<")
	if len(before) == 0 {
		return true
	}
	switch before[len(before)-1] {
	case '.', '!', '?', ':', ']', '>', '|':
		return true
	}
	return strings.HasSuffix(before, "—") || strings.HasSuffix(before, "】") || strings.HasSuffix(before, " -") || !hasLetter(before)
}

// Values of position.
const (
	_ = iota
	standsAlone
	beginsLine
	endsLine
	insideLine
)

var positionNames = []string{"alone", "begins line", "ends line", "inside"}

// position returns where on its line a token stands.
func (t *codeText) position(tok *codeToken) int {
	l := t.lines[tok.line]
	switch first, last := !hasLetter(t.text[l.start:tok.start]), !hasLetter(t.text[tok.end:l.end]); {
	case first && last:
		return standsAlone
	case first:
		return beginsLine
	case last:
		return endsLine
	}
	return insideLine
}

// around returns the kinds of the words of the lines from first to last lines below, or above if
// they are negative.
func (p *codePlace) around(first, last int) (set uint32) {
	for n := max(p.tok.line+first, 0); n <= p.tok.line+last && n < len(p.t.lines); n++ {
		set |= p.t.kindsOf(n)
	}
	return set
}

// colonAbove reports whether the line above ends with a colon, as in "Your
// code:".
func (p *codePlace) colonAbove() bool {
	if p.tok.line == 0 {
		return false
	}
	l := p.t.lines[p.tok.line-1]
	return plaintext.EndsWithColon(strings.TrimRight(p.t.text[l.start:l.end], " \t\r"))
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
