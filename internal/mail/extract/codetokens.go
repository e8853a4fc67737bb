package extract

import (
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// codeToken is a number, or a mix of letters and digits, in a text.
type codeToken struct {
	start, end int
	line       int
	shape      codeShape
	value      string // as the reader types it; "" if it cannot be a code
}

type codeShape int

const (
	noCode      codeShape = iota // too long or short, a date, a price, ...
	digitCode                    // 482913
	groupCode                    // 482 913, 482-913
	mixedCode                    // A1B2C3, A7F3-09BD
	shortCode                    // B4N8
	lowerCode                    // hj4tq8xw
	letterCode                   // KXQ-WRT
	wordCode                     // larosi-tupeno-mikado
	caseCode                     // Rk7mPx, mK4-tQz9
	groupedCode                  // T4-9ZL-P2
	prefixCode                   // GH-771204
	unevenCode                   // 419-22-8073, 12 3456
	splitCode                    // 7K2 9QX
)

// isDigits reports whether a code of this shape has only digits.
func (c codeShape) isDigits() bool { return c == digitCode || c == groupCode || c == unevenCode }

const (
	minDigits, maxDigits   = 3, 10
	minLetters, maxLetters = 5, 10
	minShort               = 4 // minimum length of a short mix of letters and digits
)

// findTokens returns the tokens that look like codes, and other numbers, which
// show what the words near them describe.
func (t *codeText) findTokens() []codeToken {
	tokens := make([]codeToken, 0, 16)
	for i := range t.lines {
		if t.budget.Spent() {
			break
		}
		if l := &t.lines[i]; !l.quoted && mayHaveToken(t.text[l.start:l.end]) {
			tokens = t.lineTokens(i, tokens)
		}
	}
	return tokens
}

// mayHaveToken reports whether a line has a digit, two capitals in a row, or a hyphen
// after a letter.
func mayHaveToken(line string) bool {
	before := byte(0)
	for i := range len(line) {
		kind := byteKind[line[i]]
		if kind&digitByte != 0 || kind&before&upperByte != 0 || line[i] == '-' && before != 0 {
			return true
		}
		before = kind
	}
	return false
}

func (t *codeText) lineTokens(line int, tokens []codeToken) []codeToken {
	l := t.lines[line]
	plain := l.start // an email address cannot begin before this position
	for pos := l.start; pos < l.end && !t.budget.Spent(); {
		if !plaintext.IsAlnum(t.text[pos]) {
			pos++
			continue
		}
		if t.isSpaced(pos, l) {
			if tok, ok := t.spacedToken(pos, l); ok {
				tok.line = line
				tokens = append(tokens, tok)
				pos = tok.end
				continue
			}
		}
		n, isWord := plainWord(t.text[pos:l.end])
		if isWord {
			pos += n
			continue
		}
		if n := plaintext.URLLen(t.text[pos:l.end]); n > 0 {
			pos += n
			continue
		}
		if pos >= plain {
			n, isAddress := addressLen(t.text[pos:l.end])
			plain = pos + n
			if isAddress {
				pos = plain
				continue
			}
		}
		run := t.run(pos, l.end)
		if tok, ok := t.splitToken(run, l); ok {
			tok.line = line
			tokens = append(tokens, tok)
			pos = tok.end
			continue
		}
		if run.mayBeCode() {
			if tok, ok := t.token(run, l); ok {
				tok.line = line
				tokens = append(tokens, tok)
				pos = tok.end
				continue
			}
		}
		pos = run.end
	}
	return tokens
}

// spacedToken reads a code that starts at pos and is written with spaces: "A 4
// K 9 T Z".
func (t *codeText) spacedToken(pos int, l codeLine) (tok codeToken, ok bool) {
	if pos > l.start && (plaintext.IsAlnum(t.text[pos-1]) || t.endsSpaced(pos-1, l)) {
		return tok, false
	}
	value, kinds, end := make([]byte, 0, maxLetters), byte(0), pos
	for t.isSpaced(end, l) {
		if len(value) == maxLetters {
			return tok, false
		}
		value, kinds = append(value, t.text[end]), kinds|byteKind[t.text[end]]
		end++
		gap := spacedGap(t.text[end:l.end])
		if gap == 0 || !t.isSpaced(end+gap, l) {
			break
		}
		if gap > 1 {
			value = append(value, '-')
		}
		end += gap
	}
	if kinds != upperByte|digitByte || len(value) < minLetters {
		return tok, false
	}
	return codeToken{start: pos, end: end, shape: mixedCode, value: string(value)}, true
}

// spacedGap returns the length of the gap at the start of s between two single
// characters, with or without a dash, or 0.
func spacedGap(s string) int {
	switch {
	case s == "" || !isGap(s[0]):
		return 0
	case len(s) > 2 && s[1] == '-' && isGap(s[2]):
		return 3
	}
	return 1
}

// isSpaced reports whether a single letter or digit is at pos.
func (t *codeText) isSpaced(pos int, l codeLine) bool {
	return pos < l.end && isBoxed(t.text[pos]) && (pos+1 == l.end || !plaintext.IsAlnum(t.text[pos+1]))
}

// endsSpaced reports whether pos is the gap after a single letter or digit, so
// that the next character is not the first of its run.
func (t *codeText) endsSpaced(pos int, l codeLine) bool {
	return pos > l.start && isGap(t.text[pos]) && isBoxed(t.text[pos-1]) && (pos-1 == l.start || !plaintext.IsAlnum(t.text[pos-2]))
}

func isGap(c byte) bool { return c == ' ' || c == '\t' }

// maxSplit is the number of groups in a code such as "7K2 9QX".
const maxSplit = 3

// splitToken reads a code that is written in two or three equal groups of
// capitals and digits with a space between them: "7K2 9QX". A group mixes them.
// A group of only capitals may be a word, so it must not have a vowel.
func (t *codeText) splitToken(r codeRun, l codeLine) (tok codeToken, ok bool) {
	size := r.end - r.start
	if size < 3 || size > 4 || r.end == l.end || t.text[r.end] != ' ' || !t.isSplit(r) {
		return tok, false
	}
	mixed, groups, end := r.upper > 0 && r.digits > 0, 1, r.end
	for end+1 < l.end && t.text[end] == ' ' && plaintext.IsAlnum(t.text[end+1]) {
		next := t.run(end+1, l.end)
		if next.end-next.start != size || !t.isSplit(next) {
			break
		}
		if groups == maxSplit {
			return tok, false // an account number
		}
		mixed = mixed || next.upper > 0 && next.digits > 0
		groups, end = groups+1, next.end
	}
	if groups == 1 || !mixed {
		return tok, false
	}
	tok = codeToken{start: r.start, end: end, shape: splitCode, value: strings.ReplaceAll(t.text[r.start:end], " ", "")}
	return tok, t.standsFree(tok, l)
}

// isSplit reports whether a run may be a group of a split code.
func (t *codeText) isSplit(r codeRun) bool {
	return r.hyphens == 0 && r.lower == 0 && (r.digits > 0 || vowels(t.text[r.start:r.end]) == 0)
}

// plainWord returns the length of the word at the start of s if it cannot be a
// code or part of an address: a word with lower-case letters that ends at white
// space or punctuation.
func plainWord(s string) (n int, ok bool) {
	kinds, i := byte(0), 0
	for i < len(s) && byteKind[s[i]]&(lowerByte|upperByte) != 0 {
		kinds |= byteKind[s[i]]
		i++
	}
	if kinds&lowerByte == 0 && i >= minShort || i == 0 {
		return 0, false
	}
	switch {
	case i == len(s):
		return i, true
	case s[i] == ' ', s[i] == ',', s[i] >= utf8.RuneSelf:
		return i, true
	}
	// The end of a sentence, but not "www.example" or "ann@example".
	return i, byteKind[s[i]] == 0 && s[i] != '@' && (i+1 == len(s) || s[i+1] == ' ')
}

// Kinds of bytes in byteKind.
const (
	lowerByte byte = 1 << iota
	upperByte
	digitByte
)

var byteKind = func() (kinds [256]byte) {
	for c := 'a'; c <= 'z'; c++ {
		kinds[c], kinds[c-'a'+'A'] = lowerByte, upperByte
	}
	for c := '0'; c <= '9'; c++ {
		kinds[c] = digitByte
	}
	return kinds
}()

// codeRun is a run of letters and digits joined by single hyphens.
type codeRun struct {
	start, end           int
	digits, upper, lower int
	hyphens              int
	first, last          int // length of the first and the last group
	uniform              bool
}

// mayBeCode reports whether a run may be a code: it has digits, only capitals,
// or lower-case words joined by hyphens.
func (r *codeRun) mayBeCode() bool {
	return r.digits > 0 || r.lower == 0 || r.upper == 0 && r.hyphens >= 2
}

// run reads the run that starts at pos.
func (t *codeText) run(pos, end int) codeRun {
	r := codeRun{start: pos, uniform: true}
	group := 0
	for i := pos; i <= end; i++ {
		var c byte
		if i < end {
			c = t.text[i]
		}
		switch {
		case plaintext.IsDigit(c):
			r.digits++
			group++
			continue
		case 'A' <= c && c <= 'Z':
			r.upper++
			group++
			continue
		case 'a' <= c && c <= 'z':
			r.lower++
			group++
			continue
		}
		if r.hyphens == 0 {
			r.first = group
		}
		r.uniform = r.uniform && group == r.first
		r.last = group
		r.end = i
		if c != '-' || i+1 >= end || !plaintext.IsAlnum(t.text[i+1]) {
			break
		}
		r.hyphens++
		group = 0
	}
	return r
}

// token classifies a run. It returns false if the run is not a token.
func (t *codeText) token(r codeRun, l codeLine) (codeToken, bool) {
	tok := codeToken{start: r.start, end: r.end}
	letters := r.upper + r.lower
	if end := t.phoneEnd(r.start, l); end > r.start && letters == 0 {
		tok.end = end
		return tok, true
	}
	switch {
	case letters == 0 && r.hyphens == 0:
		t.digitToken(&tok, r, l)
	case letters == 0:
		t.hyphenToken(&tok, r)
	case r.digits == 0:
		if !t.letterToken(&tok, r) {
			return tok, false
		}
	default:
		t.mixedToken(&tok, r)
	}
	if tok.value != "" && (isMasked(tok.value) || isLongDate(tok.value) || t.followsMask(tok, l) || !t.standsFree(tok, l)) {
		tok.value, tok.shape = "", noCode
	}
	return tok, true
}
