package plaintext

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Truncate returns at most the first n bytes of s, cut between runes.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// FoldSpace trims s and replaces each run of white space by one space.
func FoldSpace(s string) string {
	if isFolded(s) {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

func isFolded(s string) bool {
	space := true // true to detect a leading space
	for _, r := range s {
		switch {
		case r == ' ':
			if space {
				return false
			}
			space = true
		case unicode.IsSpace(r):
			return false
		default:
			space = false
		}
	}
	return !space || s == ""
}

// OneLine replaces control characters and Unicode line separators by spaces and
// trims s.
func OneLine(s string) string {
	clean := strings.IndexFunc(s, BreaksLine) < 0
	if !clean {
		s = strings.Map(func(r rune) rune {
			if BreaksLine(r) {
				return ' '
			}
			return r
		}, s)
	}
	return strings.TrimSpace(s)
}

// UnixLines replaces CRLF and CR by LF.
func UnixLines(s string) string {
	at := strings.IndexByte(s, '\r')
	if at < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for at >= 0 {
		b.WriteString(s[:at])
		b.WriteByte('\n')
		if s = s[at+1:]; s != "" && s[0] == '\n' {
			s = s[1:]
		}
		at = strings.IndexByte(s, '\r')
	}
	b.WriteString(s)
	return b.String()
}

func EndsWithColon(line string) bool {
	if line == "" || line[len(line)-1] < utf8.RuneSelf {
		return strings.HasSuffix(line, ":")
	}
	line = strings.TrimRight(line, "\u202c\u200f") // bidirectional marks
	return strings.HasSuffix(line, ":") || strings.HasSuffix(line, "：")
}

// Unquote removes quotes, and backslashes inside quotes.
func Unquote(s string) string {
	out := make([]byte, 0, len(s))
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			quoted = !quoted
			continue
		case s[i] == '\\' && quoted && i+1 < len(s):
			i++
		}
		out = append(out, s[i])
	}
	return string(out)
}

func WordSet(list string) map[string]bool {
	set := map[string]bool{}
	for label := range strings.SplitSeq(list, "|") {
		set[strings.TrimSpace(label)] = true
	}
	return set
}

// HasWord reports whether a text contains a letter or a digit.
func HasWord(text []byte) bool {
	return bytes.IndexFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) >= 0
}
