package mailauth

import (
	"strings"
)

// FieldName is the header field that carries verdicts from one host to the
// next (RFC 8601).
const FieldName = "Authentication-Results"

// Field renders the verdicts as the value of an Authentication-Results field of
// the host, folded with a line for each method. What the sender has chosen is
// quoted, or left out when it cannot be.
func (v Verdicts) Field(host string, env Envelope) string {
	var b strings.Builder
	b.WriteString(host)
	v.writeSPF(&b, env)
	if len(v.DKIM) == 0 {
		b.WriteString(";\r\n\tdkim=none")
	}
	for _, s := range v.DKIM {
		b.WriteString(";\r\n\tdkim=" + string(s.Result))
		writeComment(&b, s.Reason)
		writeProperty(&b, "header.d", s.Domain)
		writeProperty(&b, "header.i", s.Identity)
		writeProperty(&b, "header.s", s.Selector)
		writeProperty(&b, "header.a", s.Algorithm)
		writeProperty(&b, "header.b", s.Value)
	}
	b.WriteString(";\r\n\tdmarc=" + string(v.DMARC.Result))
	if v.DMARC.Policy != "" {
		writeComment(&b, "p="+v.DMARC.Policy)
	} else {
		writeComment(&b, v.DMARC.Reason)
	}
	writeProperty(&b, "header.from", v.DMARC.Domain)
	return b.String()
}

func (v Verdicts) writeSPF(b *strings.Builder, env Envelope) {
	b.WriteString(";\r\n\tspf=" + string(v.SPF.Result))
	writeComment(b, v.SPF.Reason)
	if v.SPF.HELO {
		writeProperty(b, "smtp.helo", env.HELO)
		return
	}
	writeProperty(b, "smtp.mailfrom", env.MailFrom)
}

// writeComment writes a reason in parentheses. Reasons quote records of
// others, so nothing but plain text is let through.
func writeComment(b *strings.Builder, text string) {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > 0x7e || strings.ContainsRune(`()\`, r) {
			return -1
		}
		return r
	}, text)
	if text != "" {
		b.WriteString(" (" + text + ")")
	}
}

// maxProperty bounds a property's value, in bytes: the longest address.
const maxProperty = 320

func writeProperty(b *strings.Builder, name, value string) {
	if value == "" || len(value) > maxProperty || strings.IndexFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\uFFFD' }) >= 0 {
		return
	}
	plain := strings.IndexFunc(value, func(r rune) bool {
		return r <= ' ' || r > 0x7e || strings.ContainsRune(`"\(),:;<>[]?=`, r)
	}) < 0
	if !plain {
		value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	b.WriteString(" " + name + "=" + value)
}

// ClaimsHost reports whether the value of an Authentication-Results field says
// that it is from host. Such a field in a mail that comes in is forged, or from
// another time: it must not be shown as ours (RFC 8601 section 5). Comments,
// case, versions, and a dot at the end make no difference.
func ClaimsHost(value, host string) bool {
	name, ok := authServID(value)
	return ok && sameHost(name, host)
}

func sameHost(a, b string) bool {
	x, ok := asciiDomain(a)
	y, ok2 := asciiDomain(b)
	if !ok || !ok2 {
		return strings.EqualFold(a, b)
	}
	return x == y
}

// authServID reads the first word of a field: a token or a quoted string, after
// white space and comments. False when there is none.
func authServID(s string) (string, bool) {
	s = skipComments(s)
	if s == "" {
		return "", false
	}
	if s[0] != '"' {
		end := strings.IndexAny(s, " \t\r\n;(")
		if end < 0 {
			end = len(s)
		}
		return s[:end], end > 0
	}
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return trimSpace(out.String()), true
		case '\\':
			if i++; i == len(s) {
				return "", false
			}
		}
		out.WriteByte(s[i])
	}
	return "", false
}

// skipComments returns what follows white space and comments, which may be
// nested.
func skipComments(s string) string {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == '\\' && depth > 0:
			i++
		case depth == 0 && strings.IndexByte(whiteSpace, c) < 0:
			return s[i:]
		}
	}
	return ""
}
