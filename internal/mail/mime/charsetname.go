package mime

import (
	"strings"
	"sync"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// charsetKind is how a charset encodes non-ASCII characters.
type charsetKind int

const (
	charsetUnknown charsetKind = iota // missing or unknown
	charsetUTF8
	charsetLatin   // single bytes, mostly accented letters
	charsetSingle  // single bytes, other alphabets
	charsetDouble  // two or more bytes
	charsetEscaped // ASCII with escape sequences
	charsetWide    // two or four bytes per character
)

// charset is a supported charset.
type charset struct {
	kind   charsetKind
	decode func([]byte) ([]byte, error)
}

// lookupCharset returns the charset for a name in a message: a web or IANA
// name, or a common variant of one.
func lookupCharset(name string) charset {
	switch name {
	case "utf-8", "UTF-8":
		return charset{kind: charsetUTF8}
	case "":
		return charset{}
	}
	key := charsetKey(name)
	switch c, ok := usualCharsets()[key]; {
	case ok:
		return c
	case len(key) > maxCharset:
		return charset{}
	}
	return registeredCharset(name, key)
}

// charsetKey returns a name without the characters that programs write
// differently. It drops a leading "3D", a quoted-printable "=".
func charsetKey(name string) string {
	name = strings.ToLower(strings.Trim(name, " \t\r\n\"'"))
	name, _, _ = strings.Cut(name, ";")
	name = strings.TrimPrefix(name, "3d")
	key := make([]byte, 0, len(name))
	for _, c := range []byte(name) {
		if plaintext.IsAlnum(c) {
			key = append(key, c)
		}
	}
	return string(key)
}

// registeredCharset looks up a name in the web and IANA indexes.
func registeredCharset(name, key string) charset {
	name = strings.ToLower(strings.Trim(name, " \t\r\n\"'"))
	names := []string{name, strings.ReplaceAll(name, "_", "-")}
	for _, prefix := range []string{"xcp", "cp", "win", "windows", "xwindows", "mswin", "ansi"} {
		if page, ok := strings.CutPrefix(key, prefix); ok {
			names = append(names, "windows-"+page, "ibm"+page)
		}
	}
	if part, ok := strings.CutPrefix(key, "iso8859"); ok {
		names = append(names, "iso-8859-"+strings.TrimRight(part, "ei"))
	}
	for _, n := range names {
		if enc, err := htmlindex.Get(n); err == nil && enc != encoding.Replacement && enc != charmap.XUserDefined {
			return encoded(charsetSingle, enc)
		}
		if enc, err := ianaindex.MIME.Encoding(n); err == nil && enc != nil && enc != encoding.Replacement {
			return encoded(charsetSingle, enc)
		}
	}
	return charset{}
}

func encoded(kind charsetKind, enc encoding.Encoding) charset {
	return charset{kind, func(data []byte) ([]byte, error) { return enc.NewDecoder().Bytes(data) }}
}

// usualCharsets maps keys to the most common charsets and those that the
// indexes lack or define differently.
var usualCharsets = sync.OnceValue(func() map[string]charset {
	m := map[string]charset{}
	add := func(c charset, keys string) {
		for key := range strings.FieldsSeq(keys) {
			m[key] = c
		}
	}
	add(charset{}, "usascii ascii ansix34 ansix341968 ansix341986 iso646us 646 unknown8bit xunknown unknown 8bit 7bit default none iso10646ucsbasic xuserdefined binary fakescii")
	m[""] = charset{}
	add(charset{kind: charsetUTF8}, "utf8 uft8 unicode11utf8 unicode20utf8 utf8mb4 xutf8 utf")
	add(charset{charsetEscaped, func(data []byte) ([]byte, error) { return decodeUTF7(data), nil }}, "utf7 unicode11utf7 unicode20utf7 xunicode11utf7 unicode7")
	add(encoded(charsetWide, unicode.UTF16(unicode.BigEndian, unicode.UseBOM)), "utf16 unicode ucs2 iso10646ucs2 utf16be csunicode")
	add(encoded(charsetWide, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)), "utf16le")
	add(encoded(charsetWide, utf32.UTF32(utf32.BigEndian, utf32.UseBOM)), "utf32 utf32be ucs4 iso10646ucs4")
	add(encoded(charsetWide, utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)), "utf32le")

	add(encoded(charsetLatin, charmap.Windows1252), "iso88591 iso885911987 latin1 l1 ibm819 cp819 isoir100 windows1252 cp1252 xcp1252 win1252 ansi xansi windows1252http")
	add(encoded(charsetLatin, charmap.ISO8859_15), "iso885915 latin9 latin0 xiso885915")
	add(encoded(charsetLatin, charmap.ISO8859_2), "iso88592 iso885921987 latin2 l2")
	add(encoded(charsetLatin, charmap.Windows1250), "windows1250 cp1250 xcp1250 win1250")
	add(encoded(charsetLatin, charmap.Windows1254), "windows1254 cp1254 iso88599 iso885991989 latin5")
	add(encoded(charsetLatin, charmap.Macintosh), "macintosh mac macroman xmacroman xmac xmacwestern")
	add(encoded(charsetSingle, charmap.MacintoshCyrillic), "xmaccyrillic maccyrillic xmacukrainian macuk macukrainian")
	add(encoded(charsetSingle, charmap.ISO8859_8), "iso88598 iso88598i iso88598e logical hebrew")
	add(encoded(charsetSingle, charmap.KOI8U), "koi8u koi8ru")
	add(encoded(charsetSingle, charmap.KOI8R), "koi8r koi8 cskoi8r")
	add(encoded(charsetSingle, charmap.Windows874), "tis620 tis62025331 iso885911 windows874 cp874 xwindows874 ibm874")
	for name, page := range codePages {
		keys := charsetKey(name)
		if number, ok := strings.CutPrefix(keys, "cp"); ok {
			keys += " ibm" + number
		}
		add(charset{charsetSingle, func(data []byte) ([]byte, error) { return page.decode(data), nil }}, keys)
	}
	m["xviet"], m["tcvn5712"], m["tcvn57121"], m["xviettcvn5712"] = m["viscii"], m["tcvn"], m["tcvn"], m["tcvn"]
	m["xmaccentraleurroman"], m["maccentraleurope"] = m["xmacce"], m["xmacce"]

	add(encoded(charsetEscaped, japanese.ISO2022JP), "iso2022jp iso2022jp1 iso2022jp2 iso2022jp3 iso2022jp2004 iso2022jpms csiso2022jp jis cp50220 cp50221 cp50222 xiso2022jp")
	add(encoded(charsetDouble, japanese.ShiftJIS), "shiftjis sjis xsjis mskanji windows31j cp932 ms932 windows932 xmscp932 xsjiscp932 csshiftjis shiftjis2004 mswindows31j")
	add(encoded(charsetDouble, japanese.EUCJP), "eucjp xeuc xeucjp ujis eucjpms cp51932 extendedunixcodepackedformatforjapanese")
	add(encoded(charsetDouble, korean.EUCKR), "euckr ksc5601 ksc56011987 ksc56011989 korean uhc cp949 ms949 windows949 xwindows949 ks56011987 isoir149 cseuckr")
	add(charset{charsetEscaped, func(data []byte) ([]byte, error) { return decodeShifted(data, shiftedKorean) }}, "iso2022kr csiso2022kr")
	add(charset{charsetEscaped, func(data []byte) ([]byte, error) { return decodeShifted(data, shiftedChinese) }}, "iso2022cn iso2022cnext")
	// GB 18030 contains both older charsets.
	add(encoded(charsetDouble, simplifiedchinese.GB18030), "gb2312 gb23121980 gb231280 gb18030 gbk cp936 ms936 windows936 xgbk euccn chinese isoir58 csgb2312 cngb xcp936 gb")
	add(encoded(charsetEscaped, simplifiedchinese.HZGB2312), "hzgb2312 hz")
	add(encoded(charsetDouble, traditionalchinese.Big5), "big5 big5hkscs cnbig5 xxbig5 big5eten cp950 ms950 windows950 csbig5 big5tw")
	return m
})

// Charsets for decodeShifted.
var shiftedKorean, shiftedChinese encoding.Encoding = korean.EUCKR, simplifiedchinese.GBK

// decodeShifted decodes ISO-2022-KR (RFC 1557) and the GB 2312 part of
// ISO-2022-CN (RFC 1922). Two-byte characters are between SO and SI or the end
// of the line. It ignores the escape sequences that announce them.
func decodeShifted(data []byte, enc encoding.Encoding) ([]byte, error) {
	const so, si, esc = 0x0e, 0x0f, 0x1b
	eight := make([]byte, 0, len(data))
	shifted := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == esc && i+3 < len(data) && data[i+1] == '$' && (data[i+2] == ')' || data[i+2] == '*'):
			i += 3
		case c == so:
			shifted = true
		case c == si:
			shifted = false
		case c == '\n' || c == '\r':
			shifted = false
			eight = append(eight, c)
		case shifted && c > ' ' && c < 0x7f:
			eight = append(eight, c|0x80)
		default:
			eight = append(eight, c)
		}
	}
	return enc.NewDecoder().Bytes(eight)
}
