package mailauth

import "strings"

// Field formats v as the value of an Authentication-Results header field (RFC
// 8601) from host, folded with one line per method. Values that the sender
// chose are quoted, or omitted if they cannot be quoted.
func (v Results) Field(host string, env Envelope) string {
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

func (v Results) writeSPF(b *strings.Builder, env Envelope) {
	b.WriteString(";\r\n\tspf=" + string(v.SPF.Result))
	writeComment(b, v.SPF.Reason)
	if v.SPF.HELO {
		writeProperty(b, "smtp.helo", env.HELO)
		return
	}
	writeProperty(b, "smtp.mailfrom", env.MailFrom)
}

// writeComment writes a reason in parentheses. Reasons may quote third-party
// records, so only printable ASCII is written.
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

// maxProperty is the maximum length of a property value in bytes: the longest
// address.
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
