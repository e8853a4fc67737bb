package mcp

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// tagLetters are the first letters of the fence tag's name.
const tagLetters = "untrusted"

// mostForeign is how many of these letters may be characters that resemble no
// Latin letter. The remaining letters still show the name.
const mostForeign = 4

const (
	opener  = '<' // resembles the start of a tag
	foreign = '?' // a letter that resembles none of tagLetters
)

// lookalikes maps the characters of lookalikeTable to what they resemble.
var lookalikes = readLookalikes()

func readLookalikes() map[rune]rune {
	m := map[rune]rune{}
	for target, all := range lookalikeTable {
		for _, r := range all {
			m[r] = target
		}
	}
	return m
}

// neutral escapes text that looks like the start of a fence tag with "&lt;". It
// compares the skeletons of UTS #39: look-alikes count as the letter that they
// resemble; marks, invisible characters, spaces, digits and punctuation are
// ignored. It runs in linear time.
func neutral(s string) string {
	if !mayOpen(s) {
		return s
	}
	type place struct{ at, end, letters int } // an opener, and the number of letters before it
	var openers []place
	var letters, seen []rune
	for at, r := range s {
		seen = appendSeen(seen[:0], r)
		for _, c := range seen {
			if c != opener {
				letters = append(letters, c)
			} else if n := len(openers); n == 0 || openers[n-1].at != at {
				_, size := utf8.DecodeRuneInString(s[at:])
				openers = append(openers, place{at, at + size, len(letters)})
			}
		}
	}
	var b strings.Builder
	from := 0
	for _, o := range openers {
		if readsAsTag(letters[o.letters:]) {
			b.WriteString(s[from:o.at] + "&lt;")
			from = o.end
		}
	}
	if from == 0 {
		return s
	}
	return b.String() + s[from:]
}

// mayOpen is a fast check for openers: most texts have none.
func mayOpen(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r == opener || r >= utf8.RuneSelf }) >= 0
}

// readsAsTag reports whether letters start with the name of the tag.
func readsAsTag(letters []rune) bool {
	if len(letters) < len(tagLetters) {
		return false
	}
	strange := 0
	for i := range tagLetters {
		switch letters[i] {
		case rune(tagLetters[i]):
		case foreign:
			strange++
		default:
			return false
		}
	}
	return strange <= mostForeign
}

// appendSeen appends what a reader sees in a character: lower-case letters,
// foreign, opener, or nothing.
func appendSeen(to []rune, r rune) []rune {
	switch {
	case r == opener || 'a' <= r && r <= 'z':
		return append(to, r)
	case 'A' <= r && r <= 'Z':
		return append(to, r-'A'+'a')
	case r < utf8.RuneSelf:
		return to
	}
	if c, ok := lookalikes[r]; ok {
		return append(to, c)
	}
	var decomposed [4 * utf8.UTFMax]byte
	d := norm.NFKD.AppendString(decomposed[:0], string(r))
	if first, size := utf8.DecodeRune(d); first != r || size != len(d) {
		for _, part := range string(d) {
			to = appendSeen(to, part)
		}
		return to
	}
	if unicode.IsLetter(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) {
		return append(to, foreign)
	}
	return to
}
