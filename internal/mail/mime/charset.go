package mime

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
)

// ToUTF8 decodes data in charset to valid UTF-8 without NUL. If the charset is
// unknown, or is ASCII but data is not, it guesses: UTF-8 if data is valid
// UTF-8, else windows-1252. It also guesses if data is clearly in another
// charset. Invalid bytes become U+FFFD.
func ToUTF8(data []byte, charset string) string {
	c := lookupCharset(charset)
	switch {
	case c.kind == charsetUnknown:
		return guessUTF8(data)
	case c.kind == charsetUTF8:
		return decodeSaidUTF8(data)
	case c.kind.isPlainlyUTF8(data):
		return ValidUTF8(data)
	}
	out, err := c.decode(data)
	if err != nil {
		return guessUTF8(data)
	}
	return ValidUTF8(out)
}

// decodeSaidUTF8 decodes data labelled as UTF-8. If data has no multibyte
// character but several invalid bytes, it is in another charset.
func decodeSaidUTF8(data []byte) string {
	if utf8.Valid(data) || countMultibyte(data, 1) > 0 || countHigh(data) < 2 {
		return ValidUTF8(data)
	}
	return guessUTF8(data)
}

// countHigh counts non-ASCII bytes.
func countHigh(data []byte) (n int) {
	for _, c := range data {
		if c >= utf8.RuneSelf {
			n++
		}
	}
	return n
}

// isPlainlyUTF8 reports whether data with another charset label is UTF-8. Valid
// multibyte sequences are rare in other charsets. How many are required depends
// on the kind of the charset.
func (k charsetKind) isPlainlyUTF8(data []byte) bool {
	least := 0
	switch k {
	case charsetLatin:
		least = 1
	case charsetSingle:
		least = 3
	case charsetDouble:
		least = 12
	default:
		return false
	}
	return utf8.Valid(data) && countMultibyte(data, least) >= least
}

// countMultibyte counts the multibyte UTF-8 characters in data, up to most.
func countMultibyte(data []byte, most int) (n int) {
	for i := 0; i < len(data) && n < most; {
		if data[i] < utf8.RuneSelf {
			i++
			continue
		}
		_, size := utf8.DecodeRune(data[i:])
		if size > 1 {
			n++
		}
		i += size
	}
	return n
}

// guessUTF8 decodes text whose charset is missing or wrong.
func guessUTF8(data []byte) string {
	if text, ok := decodeISO2022(data); ok {
		return text
	}
	if utf8.Valid(data) {
		return ValidUTF8(data)
	}
	out, err := charmap.Windows1252.NewDecoder().Bytes(data)
	if err != nil {
		return ValidUTF8(data)
	}
	return ValidUTF8(out)
}

// decodeISO2022 decodes ISO-2022-JP and ISO-2022-KR, which are recognized by
// their escape sequences. It returns false for other text.
func decodeISO2022(data []byte) (string, bool) {
	if !bytes.Contains(data, []byte("\x1b$")) {
		return "", false
	}
	var out []byte
	var err error
	if bytes.Contains(data, []byte("\x1b$)C")) {
		out, err = decodeShifted(data, shiftedKorean)
	} else {
		out, err = japanese.ISO2022JP.NewDecoder().Bytes(data)
	}
	if err != nil || bytes.ContainsRune(out, utf8.RuneError) {
		return "", false
	}
	return ValidUTF8(out), true
}

// metaCharset returns the charset that an HTML document declares near its
// beginning, or "".
func metaCharset(html []byte) string {
	html = bytes.ToLower(html[:min(len(html), 1024)])
	i := bytes.Index(html, []byte("charset="))
	if i < 0 {
		return ""
	}
	name := bytes.TrimLeft(html[i+len("charset="):], " \"'")
	if end := bytes.IndexAny(name, " \"'>;/"); end >= 0 {
		name = name[:end]
	}
	return string(name)
}

// ValidUTF8 returns data as a string with U+FFFD for invalid bytes, without a
// byte order mark, and without NUL, which PostgreSQL cannot store.
func ValidUTF8(data []byte) string {
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !utf8.Valid(data) {
		data = bytes.ToValidUTF8(data, []byte("\uFFFD"))
	}
	s := string(data)
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return s
}
