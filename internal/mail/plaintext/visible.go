package plaintext

import (
	"strings"
	"unicode/utf8"
)

const (
	flagBase = 0x1f3f4 // the black flag, which begins the flags of regions of a country
	tagEnd   = 0xe007f
	// minFlag and maxFlag are how many tags the name of a region has: two letters of the
	// country and up to four of the region.
	minFlag, maxFlag = 3, 6
)

// Visible returns s without the characters that hide text from readers but not from
// programs: tags except those of flags, the rest of their block, fillers, and all but the
// first of a run of variation selectors. Joiners and direction marks stay, which some
// scripts need.
func Visible(s string) string {
	at := strings.IndexFunc(s, hides)
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	selected := true // no selector may follow
	for at = 0; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		whole := s[at : at+size]
		at += size
		switch {
		case isSelector(r):
			if selected {
				continue
			}
			selected = true
		case hides(r):
			continue
		default:
			selected = false
		}
		b.WriteString(whole)
		if r == flagBase {
			n := flagTags(s[at:])
			b.WriteString(s[at : at+n])
			at += n
		}
	}
	return b.String()
}

// hides reports whether Visible may remove r.
func hides(r rune) bool { return r >= 0x115f && (isSelector(r) || isFiller(r) || isPlane14(r)) }

func isSelector(r rune) bool {
	return 0xfe00 <= r && r <= 0xfe0f || 0x180b <= r && r <= 0x180d || r == 0x180f
}

// flagTags returns the length of the tags at the start of s that make a flag: letters and
// digits, and the end.
func flagTags(s string) int {
	n, tags := 0, 0
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		n += size
		switch letter := 0xe0061 <= r && r <= 0xe007a; {
		case r == tagEnd && tags >= minFlag:
			return n
		case tags == maxFlag, !letter && (tags < 2 || r < 0xe0030 || r > 0xe0039):
			return 0
		}
		tags++
	}
	return 0
}
