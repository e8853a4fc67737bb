package mime

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
)

// ToUTF8 decodes data, written in the charset that a message names, to valid
// UTF-8 without NUL. A charset that is unknown, or that claims ASCII where
// there is more, is guessed: UTF-8 when the bytes are that, else
// windows-1252. So is one that the bytes plainly are not written in. Bytes
// that mean nothing become U+FFFD; no text is lost.
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

// decodeSaidUTF8 decodes what is said to be UTF-8. Where no character but
// ASCII is written in it, and more than one byte has no meaning, the bytes are
// those of another charset.
func decodeSaidUTF8(data []byte) string {
	if utf8.Valid(data) || countMultibyte(data, 1) > 0 || countHigh(data) < 2 {
		return ValidUTF8(data)
	}
	return guessUTF8(data)
}

// countHigh counts the bytes that are not ASCII.
func countHigh(data []byte) (n int) {
	for _, c := range data {
		if c >= utf8.RuneSelf {
			n++
		}
	}
	return n
}

// isPlainlyUTF8 reports whether text is UTF-8, though it is said to be of
// another charset. Such bytes make sense in hardly any other: the more of them
// there have to be, the more bytes its characters have.
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

// countMultibyte counts the characters that are written in UTF-8 with more
// than one byte, up to most.
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

// guessUTF8 decodes text whose charset is not told, or told wrongly.
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

// decodeISO2022 decodes ISO-2022-JP and ISO-2022-KR, which show themselves by
// their escape sequences and otherwise are ASCII.
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

// metaCharset returns the charset that an HTML document names for itself near
// its beginning, for a part that does not tell.
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

// ValidUTF8 returns data as a string with U+FFFD for what is not UTF-8, and
// without NUL, which PostgreSQL does not store, and byte order mark.
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
