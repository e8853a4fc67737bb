package mail

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"

	"github.com/postroom/postroom/internal/mail/plaintext"
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

// maxDomainText is the largest size in bytes of a domain in Unicode: 253 characters of
// four bytes.
const maxDomainText = 4 * 253

// Mailbox returns an address in the form in which all spellings of one mailbox
// are equal: in lower case, without a tag ("+news"), without quotes, and with
// the domain in ASCII.
func Mailbox(email string) string {
	at := strings.LastIndexByte(email, '@')
	if at < 0 {
		return FoldAddress(email)
	}
	local, domain := email[:at], email[at+1:]
	if len(local) >= 2 && local[0] == '"' && local[len(local)-1] == '"' {
		local = plaintext.Unquote(local)
	}
	local = FoldAddress(norm.NFKC.String(local))
	if tag := strings.IndexByte(local, '+'); tag > 0 {
		local = local[:tag]
	}
	domain = strings.TrimSuffix(FoldAddress(domain), ".")
	// A longer domain is in no DNS, and its conversion takes more than linear time.
	if len(domain) <= maxDomainText {
		if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
			domain = ascii
		}
	}
	return local + "@" + domain
}
