package labelled

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Plain normalizes a code for comparison: NFKC, ASCII digits, upper case,
// without spaces, dashes and invisible characters.
func Plain(s string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		switch {
		case r == '\u200b', r == '\u00ad', unicode.IsSpace(r), unicode.Is(unicode.Pd, r):
			return -1
		case unicode.Is(unicode.Nd, r):
			return asciiDigit(r)
		}
		return r
	}, norm.NFKC.String(s)))
}

// asciiDigit converts a digit of any script to ASCII. The ten digits of a script
// are consecutive.
func asciiDigit(r rune) rune {
	n := rune(0)
	for n < 9 && unicode.Is(unicode.Nd, r-n-1) && r-n-1 >= '0' {
		n++
	}
	return '0' + n%10
}
