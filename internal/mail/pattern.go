package mail

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// FoldAddress makes an address comparable without regard to case. It leaves
// letters outside ASCII that fold into it unchanged, such as the Kelvin sign:
// they are other letters to a server.
func FoldAddress(email string) string {
	return strings.Map(func(r rune) rune {
		if low := unicode.ToLower(r); r < utf8.RuneSelf || low >= utf8.RuneSelf {
			return low
		}
		return r
	}, email)
}

// MatchAddress reports whether an address matches a pattern: an address, or
// one with wildcards such as "*@example.com", "*@*.example.com" or
// "no-reply*@example.com". A "*" stands for any run of characters, also an
// empty one; everything else, "?" and "%" and "_" too, stands for itself.
// Letter case does not count, as in FoldAddress.
func MatchAddress(pattern, email string) bool {
	return glob(FoldAddress(pattern), FoldAddress(email))
}

// LikePattern returns a pattern as MatchAddress takes it in the form of SQL's
// LIKE, to be compared with what FoldAddress returns, with ESCAPE '\'.
func LikePattern(pattern string) (like string) {
	return likeEscaper.Replace(FoldAddress(pattern))
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)

// glob matches with one position to fall back to, that of the last star, so
// it takes at most len(pattern) × len(s) steps.
func glob(pattern, s string) bool {
	p, i := 0, 0
	star, mark := -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
