package smtp

import (
	"strings"
	"unicode/utf8"
)

// QuoteMailbox returns a mailbox whose local part has lost its quotes, as go-smtp passes
// it on, with the quotes that it needs (RFC 5321 section 4.1.2).
func QuoteMailbox(s string) string {
	local, domain, ok := splitMailbox(s)
	plain := isDotString(local) && !strings.Contains("."+local+".", "..")
	if !ok || local == "" || plain || isQuoted(local) {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(local) + `"@` + domain
}

// IsMailbox reports whether s is a local part, an "@" and a domain or address
// literal.
func IsMailbox(s string) bool {
	if len(s) > MaxPath || !utf8.ValidString(s) {
		return false
	}
	local, domain, ok := splitMailbox(s)
	return ok && (isDotString(local) || isQuoted(local)) && IsDomain(domain)
}

// splitMailbox splits s at the "@" that is not quoted.
func splitMailbox(s string) (local, domain string, ok bool) {
	at := strings.LastIndexByte(s, '@')
	if at < 0 {
		return "", "", false
	}
	return s[:at], s[at+1:], true
}

// isDotString follows RFC 5321 section 4.1.2, but allows dots anywhere, because
// some servers do.
func isDotString(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune(`()<>[]:;@\,"`, r)
	})
}

// isQuoted reports whether s is a non-empty quoted string.
func isQuoted(s string) bool {
	if len(s) < 3 || s[0] != '"' || s[len(s)-1] != '"' {
		return false
	}
	inside := s[1 : len(s)-1]
	for i := 0; i < len(inside); i++ {
		switch inside[i] {
		case '"':
			return false
		case '\\':
			if i++; i == len(inside) {
				return false
			}
		}
	}
	return true
}

// unquote removes the quotes and backslashes of a quoted local part.
func unquote(local string) string {
	if !isQuoted(local) {
		return local
	}
	var b strings.Builder
	inside := local[1 : len(local)-1]
	for i := 0; i < len(inside); i++ {
		if inside[i] == '\\' {
			i++
		}
		b.WriteByte(inside[i])
	}
	return b.String()
}

func IsDomain(s string) bool {
	if literal, ok := strings.CutPrefix(s, "["); ok {
		literal, ok = strings.CutSuffix(literal, "]")
		return ok && literal != "" && !strings.ContainsFunc(literal, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`[]\`, r) })
	}
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !letter && r < utf8.RuneSelf && r != '-' && r != '.' && r != '_'
	})
}
