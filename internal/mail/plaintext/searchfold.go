package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// FoldForSearch returns s as words for a full-text index: lower case, without
// accents, letters and digits only, separated by single spaces. Scripts that
// are written without spaces come as overlapping pairs of characters, so that
// a word is found inside a sentence. Text and query are folded alike, which
// is what makes a search mean the same on every database.
func FoldForSearch(s string) string {
	f := folder{out: make([]byte, 0, len(s))}
	if IsASCII(s) {
		f.ascii(s)
	} else {
		// Marks are dropped from the decomposed form; composing what is left
		// puts Hangul together again.
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

// folder writes words. It remembers the last character of a run that is
// written in pairs.
type folder struct {
	out    []byte
	inWord bool
	pair   rune // last character of a run without spaces, 0 outside of one
	paired bool // pair is part of a pair that is written
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
			// Part of the word, but nothing that is typed into a query.
		default:
			f.endPairs()
			f.inWord = false
		}
	}
	f.endPairs()
}

// letter writes a lower-case letter; those that do not decompose are written
// as people type them who lack the key.
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

// startWord separates a word from the one before it.
func (f *folder) startWord() {
	if !f.inWord && len(f.out) > 0 {
		f.out = append(f.out, ' ')
	}
	f.inWord = true
}

// pairUp adds r to a run: the run abc is written as "ab bc".
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

// endPairs ends a run; one of a single character is written alone.
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
