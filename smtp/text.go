package smtp

import (
	"bytes"
	"unicode/utf8"
)

// CRLF ends every line of SMTP and of a message.
var CRLF = []byte("\r\n")

// FirstLineEnd returns the index of the first CR or LF in b, or len(b).
func FirstLineEnd(b []byte) int {
	if lf := bytes.IndexByte(b, '\n'); lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return len(b)
}

// Truncate returns at most the first n bytes of s, and does not split characters.
func Truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
