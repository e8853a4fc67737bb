package bounce

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// findStatus returns the first specific enhanced status code in text, else the
// first code of the form x.0.0, or "". It skips version numbers and IP
// addresses.
func findStatus(text string) string { return findClass(text, "245") }

// findFailure is findStatus for failure codes only.
func findFailure(text string) string { return findClass(text, "45") }

func findClass(text, classes string) string {
	first := ""
	for i := 0; i < len(text); i++ {
		if strings.IndexByte(classes, text[i]) < 0 || i > 0 && (plaintext.IsAlnum(text[i-1]) || text[i-1] == '.') {
			continue
		}
		n := statusLen(text[i:])
		if n == 0 {
			continue
		}
		s := text[i : i+n]
		if !strings.HasSuffix(s, ".0.0") {
			return s
		}
		if first == "" {
			first = s
		}
		i += n
	}
	return first
}

// statusLen returns the length of the enhanced status code at the start of s: a
// class, a subject of one digit and a detail of up to three.
func statusLen(s string) int {
	if len(s) < 5 || s[1] != '.' || s[2] < '0' || s[2] > '7' || s[3] != '.' {
		return 0
	}
	n := 4
	for n < len(s) && n < 8 && plaintext.IsDigit(s[n]) {
		n++
	}
	if n == 4 || n == 8 {
		return 0
	}
	if n < len(s) && (plaintext.IsAlnum(s[n]) || s[n] == '.' && n+1 < len(s) && plaintext.IsDigit(s[n+1])) {
		return 0
	}
	return n
}

// findCode returns the SMTP reply code in a server's text, or 0: three digits
// at the start, after punctuation, or before an enhanced status code. It skips
// the number in "500 MB".
func findCode(text string) int {
	for i := 0; i+3 <= len(text); i++ {
		code := replyCode(text[i : i+3])
		if code == 0 || i > 0 && (plaintext.IsAlnum(text[i-1]) || text[i-1] == '.' || text[i-1] == '-') {
			continue
		}
		rest := text[i+3:]
		if rest != "" && (plaintext.IsAlnum(rest[0]) || rest[0] == '.') {
			continue
		}
		if strings.HasPrefix(rest, "-") || statusLen(strings.TrimLeft(rest, " :")) > 0 || opensReply(text[:i]) {
			return code
		}
	}
	return 0
}

// opensReply reports whether an SMTP reply may start after before.
func opensReply(before string) bool {
	before = strings.TrimRight(before, " \t")
	if before == "" || strings.HasSuffix(before, "\n") {
		return true
	}
	switch before[len(before)-1] {
	case ':', ';', '<', '>', '[', '(', '"', '\'', '|', '=':
		return true
	}
	for _, word := range []string{"said", "reason", "error", "was", "returned", "message"} {
		if len(before) >= len(word) && strings.EqualFold(before[len(before)-len(word):], word) {
			return true
		}
	}
	return false
}

// replyCode parses a failure code. It returns 0 for anything else.
func replyCode(s string) int {
	if (s[0] != '4' && s[0] != '5') || !plaintext.IsDigit(s[1]) || !plaintext.IsDigit(s[2]) {
		return 0
	}
	return int(s[0]-'0')*100 + int(s[1]-'0')*10 + int(s[2]-'0')
}
