package mail

import (
	"slices"
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

// CanonicalAddress returns an address in one form for comparison: folded as by
// FoldAddress, without needless quotes, and with the domain in ASCII. Unlike Mailbox,
// it keeps the tag. A plain ASCII address is only folded.
func CanonicalAddress(email string) string {
	email = FoldAddress(email)
	at := strings.LastIndexByte(email, '@')
	if at < 0 {
		return email
	}
	return plainLocalPart(email[:at]) + "@" + asciiDomain(email[at+1:])
}

// AddressSpellings returns the forms under which an address may be stored:
// CanonicalAddress, which is the first and for most addresses the only one, FoldAddress,
// and the form with the domain in Unicode.
func AddressSpellings(email string) []string {
	all := []string{CanonicalAddress(email)}
	add := func(spelling string) {
		if !slices.Contains(all, spelling) {
			all = append(all, spelling)
		}
	}
	add(FoldAddress(email))
	at := strings.LastIndexByte(all[0], '@')
	if local, domain := all[0][:at+1], all[0][at+1:]; len(domain) <= maxDomain {
		if text, err := idna.Lookup.ToUnicode(domain); err == nil {
			add(local + FoldAddress(text))
		}
	}
	return all
}

// plainLocalPart returns a folded local part without quotes if it needs none, and
// otherwise with as few backslashes as possible.
func plainLocalPart(local string) string {
	if !strings.HasPrefix(local, `"`) || !validQuoted(local) {
		return local
	}
	text := plaintext.Unquote(local)
	if text[0] != '"' && validLocalPart(text) {
		return text
	}
	return `"` + quoter.Replace(text) + `"`
}

var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// asciiDomain returns a folded domain in ASCII, or as it is if it has no such form.
func asciiDomain(domain string) string {
	// A longer domain is in no DNS, and its conversion takes more than linear time.
	if len(domain) <= maxDomainText {
		if ascii, err := idna.Lookup.ToASCII(domain); err == nil {
			return ascii
		}
	}
	return domain
}

// LikePattern converts a pattern of addresses to an SQL LIKE pattern with ESCAPE '\'.
// A pattern is an address, or one with wildcards such as "*@example.com",
// "*@*.example.com" or "no-reply*@example.com". A "*" matches any characters or none.
// All other characters match themselves, including "?", "%" and "_". Case is ignored
// if the result is compared with that of FoldAddress.
func LikePattern(pattern string) (like string) {
	return likeEscaper.Replace(FoldAddress(pattern))
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)

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
	return local + "@" + asciiDomain(strings.TrimSuffix(FoldAddress(domain), "."))
}
