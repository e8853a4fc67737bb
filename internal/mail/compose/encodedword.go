package compose

import (
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// maxCoded is the maximum length of the encoded text in an encoded word. With a
// field name before it, the line is shorter than 78.
const maxCoded = 48

// encodeWords returns s as encoded words in UTF-8, each complete in itself.
func encodeWords(s string) []string {
	quoted := 0
	for i := range len(s) {
		if !isQSafe(s[i]) && s[i] != ' ' {
			quoted++
		}
	}
	if quoted > len(s)/3 {
		return encodeB(s)
	}
	return encodeQ(s)
}

func encodeB(s string) []string {
	var words []string
	for s != "" {
		part := plaintext.Truncate(s, maxCoded/4*3)
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString([]byte(part))+"?=")
		s = s[len(part):]
	}
	return words
}

func encodeQ(s string) []string {
	var words []string
	var b strings.Builder
	for _, r := range s {
		c := qRune(r)
		if b.Len()+len(c) > maxCoded {
			words = append(words, "=?utf-8?q?"+b.String()+"?=")
			b.Reset()
		}
		b.WriteString(c)
	}
	if b.Len() > 0 {
		words = append(words, "=?utf-8?q?"+b.String()+"?=")
	}
	return words
}

// qRune returns r in the "Q" encoding.
func qRune(r rune) string {
	switch {
	case r == ' ':
		return "_"
	case r < utf8.RuneSelf && isQSafe(byte(r&0x7f)):
		return string(r)
	}
	var b strings.Builder
	for _, c := range []byte(string(r)) {
		fmt.Fprintf(&b, "=%02X", c)
	}
	return b.String()
}

// isQSafe reports whether c may occur in an encoded word in a phrase (RFC 2047
// section 5).
func isQSafe(c byte) bool {
	return plaintext.IsAlnum(c) || c == '!' || c == '*' || c == '+' || c == '-' || c == '/'
}
