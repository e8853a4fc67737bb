package smtp

import (
	"strings"
	"unicode/utf8"
)

// ParsePath parses a path in angle brackets (RFC 5321 section 4.1.2). It returns
// the mailbox as written, "" for the null path, and the parameters after it. It
// ignores a source route, as section 4.1.1.3 requires.
func ParsePath(s string) (mailbox, params string, ok bool) {
	if !strings.HasPrefix(s, "<") {
		return "", "", false
	}
	end := closing(s)
	if end < 0 {
		return "", "", false
	}
	mailbox, params = s[1:end], s[end+1:]
	if params != "" && params[0] != ' ' {
		return "", "", false
	}
	if strings.HasPrefix(mailbox, "@") {
		if _, mailbox, ok = strings.Cut(mailbox, ":"); !ok || mailbox == "" {
			return "", "", false
		}
	}
	if mailbox != "" && !isMailbox(mailbox) {
		return "", "", false
	}
	return mailbox, params, true
}

// closing returns the index of the bracket that closes the first one.
func closing(s string) int {
	quoted := false
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == '>' && !quoted:
			return i
		}
	}
	return -1
}

// isMailbox reports whether s is a local part, an "@" and a domain or address
// literal.
func isMailbox(s string) bool {
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

// Parameters parses the parameters after a path, such as SIZE=1000. Names are
// converted to upper case. ok is false if a name occurs twice.
func Parameters(s string) (map[string]string, bool) {
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return nil, true
	}
	all := make(map[string]string, len(fields))
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		name = strings.ToUpper(name)
		if _, twice := all[name]; twice || name == "" {
			return nil, false
		}
		all[name] = value
	}
	return all, true
}
