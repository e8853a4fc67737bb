package message

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// toUTF8 decodes data, written in the charset that a mail names, to valid
// UTF-8 without NUL. A charset that is unknown, or that claims ASCII where
// there is more, is guessed: UTF-8 when the bytes are that, else
// windows-1252. Bytes that mean nothing become U+FFFD; no text is lost.
func toUTF8(data []byte, charset string) string {
	charset = strings.ToLower(strings.Trim(charset, " \t\r\n\"'"))
	switch charset {
	case "", "us-ascii", "ascii", "unknown-8bit", "x-unknown", "8bit", "7bit", "default", "iso-10646-ucs-basic":
		return guessUTF8(data)
	case "utf-8", "utf8", "unicode-1-1-utf-8", "utf-8mb4", "utf8mb4":
		return validUTF8(data)
	case "utf-7", "utf7", "unicode-1-1-utf-7":
		return validUTF8(decodeUTF7(data))
	}
	enc := lookupCharset(charset)
	if enc == nil {
		return guessUTF8(data)
	}
	out, err := enc.NewDecoder().Bytes(data)
	if err != nil {
		return guessUTF8(data)
	}
	return validUTF8(out)
}

// lookupCharset finds a charset by the names used on the web, then by those
// registered with IANA. It returns nil for one that is not known.
func lookupCharset(name string) encoding.Encoding {
	switch name {
	case "utf-16", "utf16", "unicode", "ucs-2", "iso-10646-ucs-2":
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case "utf-16be":
		return unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	case "utf-16le":
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case "utf-32", "utf-32be":
		return utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
	case "utf-32le":
		return utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	case "iso-2022-jp-1", "iso-2022-jp-2", "iso-2022-jp-3", "iso-2022-jp-ms", "cp50220", "cp50221":
		return japanese.ISO2022JP
	case "cp932", "ms932", "windows-932":
		return japanese.ShiftJIS
	case "iso-8859-8-e", "iso-8859-8-i":
		name = "iso-8859-8"
	}
	if enc, err := htmlindex.Get(name); err == nil && enc != encoding.Replacement {
		return enc
	}
	if page, ok := strings.CutPrefix(name, "cp"); ok && !strings.HasPrefix(page, "-") {
		if enc, err := htmlindex.Get("windows-" + page); err == nil {
			return enc
		}
		name = "ibm" + page
	}
	name = strings.Replace(name, "cp-", "ibm", 1)
	if enc, err := ianaindex.MIME.Encoding(name); err == nil && enc != nil {
		return enc
	}
	return nil
}

// guessUTF8 decodes text whose charset is not told, or told wrongly.
func guessUTF8(data []byte) string {
	if text, ok := decodeISO2022(data); ok {
		return text
	}
	if utf8.Valid(data) {
		return validUTF8(data)
	}
	out, err := charmap.Windows1252.NewDecoder().Bytes(data)
	if err != nil {
		return validUTF8(data)
	}
	return validUTF8(out)
}

// decodeISO2022 decodes ISO-2022-JP, which shows itself by its escape sequence
// and otherwise is ASCII.
func decodeISO2022(data []byte) (string, bool) {
	if !bytes.Contains(data, []byte("\x1b$")) {
		return "", false
	}
	out, err := japanese.ISO2022JP.NewDecoder().Bytes(data)
	if err != nil || bytes.ContainsRune(out, utf8.RuneError) {
		return "", false
	}
	return validUTF8(out), true
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

// validUTF8 returns data as a string with U+FFFD for what is not UTF-8, and
// without NUL, which PostgreSQL does not store, and byte order mark.
func validUTF8(data []byte) string {
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
