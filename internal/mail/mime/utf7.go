package mime

import (
	"encoding/base64"
	"unicode/utf16"
	"unicode/utf8"
)

// decodeUTF7 decodes UTF-7 (RFC 2152). It keeps other bytes.
func decodeUTF7(data []byte) []byte {
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); {
		c := data[i]
		i++
		if c != '+' {
			out = append(out, c)
			continue
		}
		end := i
		for end < len(data) && isBase64(data[end]) {
			end++
		}
		if end == i {
			out = append(out, '+')
		} else {
			out = appendUTF7Run(out, data[i:end])
		}
		if end < len(data) && data[end] == '-' {
			end++
		}
		i = end
	}
	return out
}

// appendUTF7Run appends a base64 run that contains UTF-16.
func appendUTF7Run(out, run []byte) []byte {
	raw := make([]byte, base64.RawStdEncoding.DecodedLen(len(run)))
	n, _ := base64.RawStdEncoding.Decode(raw, run)
	raw = raw[:n]
	for i := 0; i+1 < len(raw); i += 2 {
		r := rune(raw[i])<<8 | rune(raw[i+1])
		if utf16.IsSurrogate(r) && i+3 < len(raw) {
			if full := utf16.DecodeRune(r, rune(raw[i+2])<<8|rune(raw[i+3])); full != utf8.RuneError {
				r = full
				i += 2
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

func isBase64(c byte) bool {
	return 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '+' || c == '/'
}
