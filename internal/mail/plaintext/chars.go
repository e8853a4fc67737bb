// Package plaintext has text functions that the mail packages share: character
// classes, white space, web addresses, snippets, and words for the search
// index.
package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

func IsASCII(s string) bool {
	for len(s) >= 8 {
		if s[0]|s[1]|s[2]|s[3]|s[4]|s[5]|s[6]|s[7] >= utf8.RuneSelf {
			return false
		}
		s = s[8:]
	}
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func IsAlnum(c byte) bool { return IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' }

func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

func HasDigit(text string) bool {
	return strings.ContainsAny(text, "0123456789")
}

// Digits returns the ASCII digits of a text.
func Digits(s string) string {
	var out []byte
	for i := range len(s) {
		if IsDigit(s[i]) {
			out = append(out, s[i])
		}
	}
	return string(out)
}

func IsHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func Unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}

func LowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// IsInvisible reports whether r has no visible form: zero-width spaces and
// joiners, soft hyphens, direction marks, fillers, variation selectors, tags.
func IsInvisible(r rune) bool {
	switch {
	case r < 0xad:
		return false
	case r == 0xad, r == 0x34f, r == 0x61c, r == 0xfeff, isFiller(r), isSelector(r), isPlane14(r):
		return true
	case 0x200b <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x2060 <= r && r <= 0x206f:
		return true
	}
	return false
}

// isFiller reports whether r stands for a letter that is missing, and shows nothing.
func isFiller(r rune) bool {
	return r == 0x115f || r == 0x1160 || r == 0x17b4 || r == 0x17b5 || r == 0x180e || r == 0x3164 || r == 0xffa0
}

// isPlane14 reports whether r is in the block of tags, selectors and characters that
// Unicode reserves without a visible form.
func isPlane14(r rune) bool { return 0xe0000 <= r && r <= 0xe0fff }

// IsUnspaced reports whether r belongs to a script without spaces between
// words, or with several words run together.
func IsUnspaced(r rune) bool {
	switch {
	case r < 0x0e00:
		return false
	case r == 'ー': // Unicode assigns it to neither Japanese script
		return true
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul,
		unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) && unicode.IsLetter(r)
}

// BreaksLine reports whether r is a control character or a line separator.
func BreaksLine(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029'
}
