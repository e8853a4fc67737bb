package calendar

import "strings"

// line is a content line: NAME;PARAM=a;PARAM="b:c":value (RFC 5545 section 3.1).
type line struct {
	name   string // in upper case
	params string // begins with ";", or empty
	value  string
}

// parseLine splits a line. It returns false for what is not a content line.
func parseLine(s string) (line, bool) {
	n := strings.IndexAny(s, ":;")
	if n <= 0 {
		return line{}, false
	}
	colon := n
	if s[n] == ';' {
		if colon = endOfParams(s, n); colon < 0 {
			colon = strings.IndexByte(s, ':') // a quotation mark without another
		}
		if colon < n {
			return line{}, false
		}
	}
	return line{strings.ToUpper(strings.TrimSpace(s[:n])), s[n:colon], s[colon+1:]}, true
}

// endOfParams returns the place of the colon after the parameters that begin at n, or -1.
// Only a quotation mark at the beginning of a value quotes it: some programs write
// CN=Bob "B" Stone.
func endOfParams(s string, n int) int {
	quoted := false
	for i := n; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' && quoted:
			quoted = false
		case c == '"':
			quoted = s[i-1] == '=' || s[i-1] == ','
		case c == ':' && !quoted:
			return i
		}
	}
	return -1
}

// decoded undoes the encoding of parameter values (RFC 6868).
var decoded = strings.NewReplacer("^^", "^", "^n", " ", "^'", `"`)

// param returns the value of a parameter, or "". Of a list it returns all of it.
func (l line) param(name string) string {
	for s := l.params; s != ""; {
		s = s[1:] // the semicolon
		end, quoted := 0, false
		for ; end < len(s) && (quoted || s[end] != ';'); end++ {
			if s[end] == '"' {
				quoted = !quoted && end > 0 && s[end-1] == '='
			}
		}
		key, value, _ := strings.Cut(s[:end], "=")
		if strings.EqualFold(strings.TrimSpace(key), name) {
			value = strings.TrimSpace(value)
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			return decoded.Replace(value)
		}
		s = s[end:]
	}
	return ""
}

// unescape decodes a text value (RFC 5545 section 3.3.11). A backslash before any other
// character goes too.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '\\' && i+1 < len(s) {
			if i++; s[i] == 'n' || s[i] == 'N' {
				c = '\n'
			} else {
				c = s[i]
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// escape encodes a text value.
var escape = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", `\n`)
