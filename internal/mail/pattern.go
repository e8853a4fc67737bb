package mail

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// FoldAddress folds the case of an address for comparison. It keeps non-ASCII
// letters that fold to ASCII, such as the Kelvin sign, because mail servers
// treat them as different letters.
func FoldAddress(email string) string {
	return strings.Map(func(r rune) rune {
		if low := unicode.ToLower(r); r < utf8.RuneSelf || low >= utf8.RuneSelf {
			return low
		}
		return r
	}, email)
}

// MatchAddress reports whether an address matches a pattern: an address, or one
// with wildcards such as "*@example.com", "*@*.example.com" or
// "no-reply*@example.com". A "*" matches any characters or none. All other
// characters match themselves, including "?", "%" and "_". Case is ignored, as
// in FoldAddress.
func MatchAddress(pattern, email string) bool {
	return glob(FoldAddress(pattern), FoldAddress(email))
}

// LikePattern converts a MatchAddress pattern to an SQL LIKE pattern with
// ESCAPE '\'. Compare it with the result of FoldAddress.
func LikePattern(pattern string) (like string) {
	return likeEscaper.Replace(FoldAddress(pattern))
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)

// glob backtracks only to the last star, so it takes at most len(pattern) ×
// len(s) steps.
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
