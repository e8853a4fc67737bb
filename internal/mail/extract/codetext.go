package extract

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// codeText is a text prepared for the search for codes.
type codeText struct {
	text  string // all digits as ASCII, without invisible characters
	lines []codeLine

	budget *cpubudget.Budget
}

// codeLine is one line of a codeText.
type codeLine struct {
	start, end int
	words      []codeWord // known words that describe numbers near them
	kinds      uint32     // their kinds, as bits
	scanned    bool
	quoted     bool // quoted from an older message
}

// newCodeText folds and splits s. Words are looked up later, because most lines
// have no number near them.
func newCodeText(s string) *codeText {
	if !plaintext.IsASCII(s) {
		s = foldCodes(s)
	}
	t := &codeText{text: joinDigits(s)}
	t.split()
	return t
}

// foldCodes returns s with all digits as ASCII and without invisible
// characters.
func foldCodes(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r < utf8.RuneSelf {
			out = append(out, byte(r&0x7f))
		} else if r = foldRune(r); r != 0 {
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}

// joinDigits joins digits and capitals that are each on a line of their own, as
// in messages that show a code in boxes.
func joinDigits(s string) string {
	var joined []byte
	for i := 1; i+1 < len(s); i++ {
		n := strings.IndexByte(s[i:len(s)-1], '\n')
		if n < 0 {
			break
		}
		i += n
		if isBoxed(s[i-1]) && isBoxed(s[i+1]) && (i == 1 || s[i-2] == '\n') && (i+2 == len(s) || s[i+2] == '\n') {
			if joined == nil {
				joined = []byte(s)
			}
			joined[i] = ' '
		}
	}
	if joined == nil {
		return s
	}
	return string(joined)
}

// isBoxed reports whether c may be one character of a code in boxes.
func isBoxed(c byte) bool { return byteKind[c]&(digitByte|upperByte) != 0 }

// foldRune returns the ASCII form of a digit, full-width letter, space or dash,
// 0 for an invisible character, and r otherwise.
func foldRune(r rune) rune {
	switch {
	case plaintext.IsInvisible(r):
		return 0
	case 0xff01 <= r && r <= 0xff5e:
		if c := byte(r - 0xff01 + '!'); plaintext.IsAlnum(c) || c == ':' || c == '-' {
			return rune(c)
		}
		return r // a full-width comma does not occur in numbers
	case r == '\u2028' || r == '\u2029':
		return '\n'
	case unicode.IsSpace(r):
		return ' '
	case 0x2010 <= r && r <= 0x2013, r == 0x2212:
		return '-'
	case r >= 0x660 && unicode.Is(unicode.Nd, r):
		return '0' + digitValue(r)
	}
	return r
}

// digitValue returns the value of a decimal digit of any script. Unicode orders
// the digits of each script from zero to nine.
func digitValue(r rune) rune {
	n := rune(0)
	for n < 9 && unicode.Is(unicode.Nd, r-n-1) {
		n++
	}
	if n == 9 && unicode.Is(unicode.Nd, r-10) {
		return (r - 0x1d7ce) % 10 // the mathematical digits: five consecutive sets of ten
	}
	return n
}

// lowerInPlace returns s in lower case with all byte offsets unchanged. It
// keeps a character whose lower case has another length.
func lowerInPlace(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		switch low := unicode.ToLower(r); {
		case r < utf8.RuneSelf:
			out = append(out, plaintext.LowerASCII(byte(r&0x7f)))
		case utf8.RuneLen(low) == utf8.RuneLen(r):
			out = utf8.AppendRune(out, low)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}

// split finds the lines. It skips lines of only white space.
func (t *codeText) split() {
	t.lines = make([]codeLine, 0, strings.Count(t.text, "\n")+1)
	for start := 0; start < len(t.text); {
		end := strings.IndexByte(t.text[start:], '\n')
		if end < 0 {
			end = len(t.text)
		} else {
			end += start
		}
		first := start
		for first < end && t.text[first] <= ' ' {
			first++
		}
		if first < end {
			t.lines = append(t.lines, codeLine{start: start, end: end, quoted: t.text[first] == '>'})
		}
		start = end + 1
	}
}

// endsBetween reports whether a sentence ends between two positions.
func (t *codeText) endsBetween(from, to int) bool {
	for i := from; i < to; i++ {
		if t.stopAt(i, to) > 0 {
			return true
		}
	}
	return false
}

// maxVerbWords is how many words askedFigures reads on each side of one.
const maxVerbWords = 6

// askedFigures makes "digits" and similar words nouns of a code if a verb in
// their sentence asks for them: "type these digits". Others get the kind noWord.
func (t *codeText) askedFigures(words []codeWord) []codeWord {
	asked := func(i int) bool {
		for j := max(0, i-maxVerbWords); j < len(words) && j <= i+maxVerbWords; j++ {
			from, to := words[i].end, words[j].start
			if j < i {
				from, to = words[j].end, words[i].start
			}
			if words[j].kind == useVerb && from <= to && to-from <= maxGap/2 && !t.endsBetween(from, to) {
				return true
			}
		}
		return false
	}
	var kept []codeWord
	for i, w := range words {
		if w.kind != figures {
			continue
		}
		if kept == nil {
			kept = slices.Clone(words)
		}
		if kept[i].kind = noWord; asked(i) {
			kept[i].kind = codeNoun
		}
	}
	if kept == nil {
		return words
	}
	return kept
}

// kindsOf returns the kinds of the known words of line i.
func (t *codeText) kindsOf(i int) uint32 { return t.line(i).kinds &^ (1 << noWord) }

// wordsOf returns the known words of line i.
func (t *codeText) wordsOf(i int) []codeWord {
	return t.line(i).words
}

// namesCompany reports whether a line contains a word such as "Ltd".
func namesCompany(line string) bool {
	names := wordSets().company
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return r == ' ' || r == ',' }) {
		if names[word] {
			return true
		}
	}
	return false
}

// line returns line i and finds its words on the first call.
func (t *codeText) line(i int) *codeLine {
	l := &t.lines[i]
	if l.scanned {
		return l
	}
	l.scanned = true
	l.words = t.askedFigures(findWords(lowerInPlace(t.text[l.start:l.end]), l.start))
	for _, w := range l.words {
		l.kinds |= 1 << w.kind
		if w.opens {
			l.kinds |= 1 << elsewhere
		}
	}
	if strings.Contains(t.text[l.start:l.end], "% off") {
		l.kinds |= 1 << ofShop
	}
	return l
}
