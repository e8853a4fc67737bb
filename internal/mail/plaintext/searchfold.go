package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FoldForSearch returns s as words for a full-text index: in lower case,
// without accents, only letters and digits, separated by single spaces. Scripts
// without spaces become overlapping pairs of characters, so that a word is
// found inside a sentence. Fold text and query alike, so that a search works
// the same on every database.
func FoldForSearch(s string) string {
	f := folder{out: make([]byte, 0, len(s))}
	if IsASCII(s) {
		f.ascii(s)
	} else {
		// Drop marks from the decomposed form, then compose it again for
		// Hangul.
		f.unicode(norm.NFC.String(dropMarks(norm.NFKD.String(s))))
	}
	return string(f.out)
}

func dropMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, s)
}

// folder writes words. It remembers the last character of an unspaced run.
type folder struct {
	out    []byte
	inWord bool
	pair   rune // last character of an unspaced run, or 0
	paired bool // pair is part of a written pair
}

func (f *folder) ascii(s string) {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		default:
			f.inWord = false
			continue
		}
		f.startWord()
		f.out = append(f.out, c)
	}
}

func (f *folder) unicode(s string) {
	for _, r := range s {
		switch {
		case IsUnspaced(r):
			f.pairUp(r)
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			f.endPairs()
			f.startWord()
			f.letter(unicode.ToLower(r))
		case unicode.IsMark(r), IsInvisible(r):
			// Part of the word, but not typed in queries.
		default:
			f.endPairs()
			f.inWord = false
		}
	}
	f.endPairs()
}

// letter writes a lower-case letter. Letters that do not decompose are replaced
// by their usual ASCII spelling.
func (f *folder) letter(r rune) {
	switch r {
	case 'ß':
		f.out = append(f.out, "ss"...)
	case 'æ':
		f.out = append(f.out, "ae"...)
	case 'œ':
		f.out = append(f.out, "oe"...)
	case 'þ':
		f.out = append(f.out, "th"...)
	case 'ø':
		f.out = append(f.out, 'o')
	case 'ł':
		f.out = append(f.out, 'l')
	case 'đ', 'ð':
		f.out = append(f.out, 'd')
	case 'ı':
		f.out = append(f.out, 'i')
	case 'ς':
		f.out = utf8.AppendRune(f.out, 'σ')
	default:
		f.out = utf8.AppendRune(f.out, r)
	}
}

// startWord writes the space before a word.
func (f *folder) startWord() {
	if !f.inWord && len(f.out) > 0 {
		f.out = append(f.out, ' ')
	}
	f.inWord = true
}

// pairUp adds r to an unspaced run: abc is written as "ab bc".
func (f *folder) pairUp(r rune) {
	f.inWord = false
	if f.pair != 0 {
		f.startWord()
		f.out = utf8.AppendRune(f.out, f.pair)
		f.out = utf8.AppendRune(f.out, r)
		f.inWord = false
		f.paired = true
	}
	f.pair = r
}

// endPairs ends a run and writes a single character alone.
func (f *folder) endPairs() {
	if f.pair != 0 && !f.paired {
		f.startWord()
		f.out = utf8.AppendRune(f.out, f.pair)
	}
	if f.pair != 0 {
		f.inWord = false
	}
	f.pair, f.paired = 0, false
}
