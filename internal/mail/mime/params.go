package mime

import (
	"strconv"
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// A MediaType is a structured header value: "text/plain; charset=utf-8".
type MediaType struct {
	Kind   string // lower case
	params []param
}

type param struct{ name, value string } // name in lower case

// maxParams is the maximum number of parameters read per field.
const maxParams = 200

// ParseMedia parses a Content-Type or Content-Disposition value. It accepts
// unclosed quotes, quotes within quotes, unquoted values with spaces, empty
// parameters, and a value that begins with an encoded word.
func ParseMedia(s string) MediaType {
	if n := encodedWordLen(s); n > 0 {
		s = decodeWords(s[:n]) + s[n:]
	}
	kind, rest, _ := strings.Cut(s, ";")
	if strings.IndexByte(kind, '=') > 0 { // a parameter alone
		kind, rest = "", s
	}
	kind, _, _ = strings.Cut(kind, "(") // a comment
	m := MediaType{Kind: strings.ToLower(strings.TrimSpace(kind))}
	for rest != "" && len(m.params) < maxParams {
		var p param
		p, rest = cutParam(rest)
		if p.name != "" {
			m.params = append(m.params, p)
		}
	}
	return m
}

// cutParam splits the first parameter of s from the rest.
func cutParam(s string) (p param, rest string) {
	end := strings.IndexAny(s, "=;")
	if end < 0 {
		return p, ""
	}
	if s[end] == ';' {
		return p, s[end+1:]
	}
	p.name = strings.ToLower(strings.TrimSpace(s[:end]))
	s = strings.TrimLeft(s[end+1:], " \t")
	if strings.HasPrefix(s, `"`) {
		p.value, s = cutQuoted(s)
		_, rest, _ = strings.Cut(s, ";")
		return p, rest
	}
	value, rest, _ := strings.Cut(s, ";")
	value, _, _ = strings.Cut(value, " (") // a comment
	p.value = strings.TrimSpace(value)
	if len(p.value) > 2 && p.value[0] == '\'' && p.value[len(p.value)-1] == '\'' {
		p.value = p.value[1 : len(p.value)-1]
	}
	return p, rest
}

// escaped are the characters before which a backslash is an escape. Before others it
// belongs to a Windows path.
const escaped = "\"\\ '(),;:<>=&"

// cutQuoted unquotes the quoted string at the start of s and returns the rest. A
// quote within it that is not escaped belongs to it if it ends with another one,
// before the next parameter.
func cutQuoted(s string) (value, rest string) {
	s = s[1:]
	out := make([]byte, 0, min(len(s), 64))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte(escaped, s[i+1]) >= 0:
			if i++; s[i] == '"' && endsValue(s[i+1:]) {
				return string(out), s[i+1:]
			}
		case s[i] == '"':
			more := quotedRest(s[i+1:])
			if more == 0 {
				return string(out), s[i+1:]
			}
			value, rest = string(out)+s[i:i+more], s[i+more+1:]
			if inner, ok := strings.CutPrefix(value, `"`); ok { // quoted twice
				value = strings.TrimSuffix(inner, `"`)
			}
			return value, rest
		}
		out = append(out, s[i])
	}
	return strings.TrimSpace(string(out)), ""
}

// quotedRest returns how many bytes of s, which follows a quote, still belong to the
// quoted string, with its last quote. It returns 0 if the quote has ended it.
func quotedRest(s string) int {
	s, _, _ = strings.Cut(s, ";")
	s = strings.TrimRight(s, " \t")
	name, _, ok := strings.Cut(s, "=")
	if missing := ok && strings.TrimLeft(name, " \t") != name && IsFieldName([]byte(strings.TrimLeft(name, " \t"))); missing {
		return 0 // a semicolon is missing before a parameter
	}
	if !strings.HasSuffix(s, `"`) {
		return 0
	}
	return len(s)
}

// maxParamName is longer than any name of a parameter.
const maxParamName = 64

// endsValue reports whether s, which follows an escaped quote, shows that the quote
// ends the value, as after a backslash that is not an escape: s is empty or another
// parameter.
func endsValue(s string) bool {
	s = strings.TrimLeft(s[:min(len(s), maxParamName)], " \t")
	next, isNext := strings.CutPrefix(s, ";")
	name, _, ok := strings.Cut(next, "=")
	return s == "" || isNext && ok && IsFieldName([]byte(strings.TrimSpace(name)))
}

// Raw returns a parameter without RFC 2231 decoding, or "".
func (m *MediaType) Raw(name string) string {
	for i := range m.params {
		if m.params[i].name == name {
			return m.params[i].value
		}
	}
	return ""
}

// get returns a decoded parameter. It prefers the extended and continued forms
// of RFC 2231 to the plain form. It also decodes encoded words, which programs
// use there.
func (m *MediaType) get(name string) string {
	plain, extended := "", ""
	var parts []string // of name*0, name*1, ...
	charset, coded := "", false
	for i := range m.params {
		p := &m.params[i]
		suffix, ok := strings.CutPrefix(p.name, name)
		switch {
		case !ok:
		case suffix == "" && plain == "":
			plain = p.value
		case suffix == "*":
			extended = p.value
		case strings.HasPrefix(suffix, "*"):
			n, err := strconv.Atoi(strings.Trim(suffix, "*"))
			if err != nil || n < 0 || n > maxParams {
				continue
			}
			for len(parts) <= n {
				parts = append(parts, "")
			}
			value := p.value
			if strings.HasSuffix(suffix, "*") {
				if n == 0 {
					charset, value = cutCharset(value)
				}
				coded = true
				value = percentDecode(value)
			}
			parts[n] = value
		}
	}
	switch {
	case extended != "":
		cs, value := cutCharset(extended)
		return ToUTF8([]byte(percentDecode(value)), cs)
	case len(parts) > 0 && coded:
		return ToUTF8([]byte(strings.Join(parts, "")), charset)
	case len(parts) > 0:
		return decodeWords(strings.Join(parts, ""))
	}
	return decodeWords(plain)
}

// cutCharset splits "charset'language'" from an extended value.
func cutCharset(s string) (charset, value string) {
	charset, rest, ok := strings.Cut(s, "'")
	if !ok {
		return "", s
	}
	_, value, ok = strings.Cut(rest, "'")
	if !ok {
		return "", s
	}
	return charset, value
}

// percentDecode decodes percent-encoding. It keeps malformed escapes.
func percentDecode(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && plaintext.IsHex(s[i+1]) && plaintext.IsHex(s[i+2]) {
			out = append(out, plaintext.Unhex(s[i+1])<<4|plaintext.Unhex(s[i+2]))
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}
