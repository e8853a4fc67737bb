package message

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// codeText is a text made ready for the search of codes.
type codeText struct {
	text  []byte // digits and full-width forms as ASCII, nothing invisible
	lower []byte // the same in lower case, byte for byte
	lines []codeLine
}

// codeLine is one line of a codeText.
type codeLine struct {
	start, end int
	words      []codeWord // that say what the numbers near them are
	scanned    bool
	quoted     bool // of an older mail
}

// newCodeText folds s. It does not look for words yet, as most texts have no
// number that could be a code.
func newCodeText(s string) *codeText {
	t := &codeText{}
	if isASCII(s) {
		t.text = []byte(s)
		t.lower = bytes.ToLower(t.text)
	} else {
		t.fold(s)
	}
	t.joinDigits()
	t.split()
	return t
}

// joinDigits puts digits together that stand each on a line of their own, as
// they do where a mail shows them in boxes.
func (t *codeText) joinDigits() {
	for i := 1; i+1 < len(t.text); i++ {
		if t.text[i] != '\n' || !isDigit(t.text[i-1]) || !isDigit(t.text[i+1]) {
			continue
		}
		aloneBefore := i == 1 || t.text[i-2] == '\n' || t.text[i-2] == ' ' && i > 3 && isDigit(t.text[i-3])
		aloneAfter := i+2 == len(t.text) || t.text[i+2] == '\n'
		if aloneBefore && aloneAfter {
			t.text[i], t.lower[i] = ' ', ' '
		}
	}
}

// fold writes text and lower of s, so that both have the same length.
func (t *codeText) fold(s string) {
	t.text = make([]byte, 0, len(s))
	t.lower = make([]byte, 0, len(s))
	for _, r := range s {
		if r < utf8.RuneSelf {
			t.text = append(t.text, byte(r))
			t.lower = append(t.lower, lowerASCII(byte(r)))
			continue
		}
		r = foldRune(r)
		if r == 0 {
			continue
		}
		low := unicode.ToLower(r)
		if utf8.RuneLen(low) != utf8.RuneLen(r) {
			low = r
		}
		t.text = utf8.AppendRune(t.text, r)
		t.lower = utf8.AppendRune(t.lower, low)
	}
}

// foldRune returns the ASCII form of a digit of any script, of a full-width
// form, of a space or of a dash, 0 for what is invisible, and otherwise r.
func foldRune(r rune) rune {
	switch {
	case isInvisible(r):
		return 0
	case 0xff01 <= r && r <= 0xff5e:
		return r - 0xff01 + '!'
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

// digitValue returns the value of a decimal digit of any script. The digits
// of a script stand in order, each ten beginning at a zero.
func digitValue(r rune) rune {
	n := rune(0)
	for n < 9 && unicode.Is(unicode.Nd, r-n-1) {
		n++
	}
	if n == 9 && unicode.Is(unicode.Nd, r-10) {
		return (r - 0x1d7ce) % 10 // the mathematical digits, five tens in a row
	}
	return n
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// split finds the lines. Lines that only contain white space are left out.
func (t *codeText) split() {
	t.lines = make([]codeLine, 0, bytes.Count(t.text, lf)+1)
	for start := 0; start < len(t.text); {
		end := bytes.IndexByte(t.text[start:], '\n')
		if end < 0 {
			end = len(t.text)
		} else {
			end += start
		}
		if line := bytes.TrimSpace(t.text[start:end]); len(line) > 0 {
			t.lines = append(t.lines, codeLine{start: start, end: end, quoted: line[0] == '>'})
		}
		start = end + 1
	}
}

// wordsOf returns the words of a line, which it looks for once.
func (t *codeText) wordsOf(i int) []codeWord {
	l := &t.lines[i]
	if !l.scanned {
		l.scanned = true
		l.words = findWords(t.lower, l.start, l.end)
	}
	return l.words
}
