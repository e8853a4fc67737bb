package plaintext

import (
	"strings"
	"unicode/utf8"
)

// Visible returns s without the characters that hide text from readers but not from
// programs: tags, also those of flags, the rest of their block, fillers, and all but the
// first of a run of variation selectors, zero-width characters, and marks that reverse the
// direction. Joiners stay where scripts and emoji need them, and so do the other direction
// marks.
func Visible(s string) string {
	if IsASCII(s) || strings.IndexFunc(s, hides) < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	selected := true // no selector may follow
	for at := 0; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		whole := s[at : at+size]
		at += size
		switch {
		case isSelector(r):
			if selected {
				continue
			}
			selected = true
		case isBit(r):
			if dropsBit(r, b.String()) {
				continue
			}
		case hides(r):
			continue
		default:
			selected = false
		}
		b.WriteString(whole)
	}
	return b.String()
}

// hides reports whether Visible may remove r.
func hides(r rune) bool {
	return r >= 0x115f && (isSelector(r) || isFiller(r) || isPlane14(r) || isBit(r) || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069)
}

func isSelector(r rune) bool {
	return 0xfe00 <= r && r <= 0xfe0f || 0x180b <= r && r <= 0x180d || r == 0x180f
}
