package bounce

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/mime"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// reportedAddress returns the address in a recipient field, as in "rfc822;
// a@b.example", or "" if it is not an address.
func reportedAddress(s string) string {
	kind, value, _ := cutType(s)
	switch kind {
	case "utf-8":
		value = decodeUnitext(value)
	case "", "rfc822", "smtp", "x-local", "local", "unknown":
	default:
		return ""
	}
	return plausibleAddress(value)
}

// decodeUnitext decodes the "\x{2F}" escapes in addresses of type utf-8 (RFC
// 6533 section 3).
func decodeUnitext(s string) string {
	if !strings.Contains(s, `\x{`) {
		return s
	}
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, `\x{`)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		end := strings.IndexByte(rest[:min(len(rest), 7)], '}')
		r, valid := hexRune(rest[:max(end, 0)])
		if valid {
			b.WriteRune(r)
		} else {
			b.WriteString(`\x{`)
			end = -1
		}
		s = rest[end+1:]
	}
}

func hexRune(digits string) (r rune, ok bool) {
	for i := range len(digits) {
		if !plaintext.IsHex(digits[i]) {
			return 0, false
		}
		r = r<<4 | rune(plaintext.Unhex(digits[i]))
	}
	return r, len(digits) > 0 && len(digits) <= 6 && r >= ' '
}

// plausibleAddress returns an address in a report, with or without brackets,
// its domain in lower case. It returns "" if s is not an address. It is less
// strict than mail.ValidAddress, because reports quote addresses in many forms.
func plausibleAddress(s string) string {
	s = strings.TrimSpace(s)
	if open := strings.IndexByte(s, '<'); open >= 0 {
		if end := strings.IndexByte(s[open:], '>'); end > 0 {
			s = s[open+1 : open+end]
		}
	}
	s = strings.Trim(s, "<>'` \t")
	quoted := strings.HasPrefix(s, `"`) && strings.Contains(s[1:], `"@`)
	if !quoted {
		s = strings.Trim(s, "<>\"'` \t")
	}
	if strings.HasPrefix(s, "@") { // a source route, RFC 5321 appendix C
		_, s, _ = strings.Cut(s, ":")
	}
	at := strings.LastIndexByte(s, '@')
	if at <= 0 || at == len(s)-1 || len(s) > mime.MaxAddressBytes || strings.ContainsAny(s, "<>|\x00") || s[0] == '/' || strings.ContainsAny(s, "：，。（）") ||
		!quoted && strings.ContainsAny(s, " \t") || strings.Contains(s, "://") {
		return ""
	}
	domain := strings.TrimRight(s[at+1:], ".")
	if domain == "" || strings.IndexFunc(domain, plaintext.BreaksLine) >= 0 || strings.IndexFunc(s, plaintext.BreaksLine) >= 0 {
		return ""
	}
	return s[:at+1] + strings.ToLower(domain)
}

func domainOf(email string) string { return email[strings.LastIndexByte(email, '@')+1:] }
