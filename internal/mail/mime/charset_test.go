package mime

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestToUTF8 decodes text with correct and wrong charset labels (M5).
func TestToUTF8(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, charset, in, want string }{
		{"UTF-8", "utf-8", "Grüße", "Grüße"},
		{"UTF-8 with a byte order mark", "UTF8", "\xef\xbb\xbfx", "x"},
		{"broken UTF-8", "utf-8", "a\xffb", "a\uFFFDb"},
		{"UTF-8 that is windows-1252", "utf-8", "Gr\xfc\xdfe", "Grüße"},
		{"UTF-8 that is cut off", "utf-8", "Gr\xc3\xbc\xc3", "Grü\uFFFD"},
		{"windows-1252 that is UTF-8", "windows-1252", "Grüße", "Grüße"},
		{"windows-1251 that is UTF-8", "windows-1251", "Код входа", "Код входа"},
		{"GB 2312 that is UTF-8", "gb2312", "您的登录验证码已经发送到邮箱", "您的登录验证码已经发送到邮箱"},
		{"two characters that could be either stay", "gbk", "\xd1\xe9\xd6\xa4", "验证"},
		{"no charset, UTF-8", "", "Grüße", "Grüße"},
		{"no charset, windows-1252", "", "Gr\xfc\xdfe \x80", "Grüße €"},
		{"ASCII that is UTF-8", "US-ASCII", "Grüße", "Grüße"},
		{"ASCII that is windows-1252", "us-ascii", "Gr\xfc\xdfe", "Grüße"},
		{"an unknown charset", "x-unknown", "Gr\xfc\xdfe", "Grüße"},
		{"a label in quotes", "\"iso-8859-1\"", "\xfc", "ü"},
		{"latin 2", "iso-8859-2", "\xb3\xf3d\xbc", "łódź"},
		{"latin 9", "iso-8859-15", "\xa4", "€"},
		{"windows-1251", "windows-1251", "\xca\xee\xe4", "Код"},
		{"cp1251", "cp1251", "\xca\xee\xe4", "Код"},
		{"KOI8-R", "koi8-r", "\xeb\xcf\xc4", "Код"},
		{"IBM 437", "ibm437", "\x81", "ü"},
		{"IBM 850", "cp850", "\x81", "ü"},
		{"IBM 850 with a hyphen", "cp-850", "\x81", "ü"},
		{"GB 18030", "gb18030", "\xd1\xe9\xd6\xa4", "验证"},
		{"GB 2312", "gb2312", "\xd1\xe9\xd6\xa4", "验证"},
		{"Big5", "big5", "\xc5\xe7", "驗"},
		{"Shift JIS", "shift_jis", "\x83R\x81[\x83h", "コード"},
		{"cp932", "cp932", "\x83R\x81[\x83h", "コード"},
		{"EUC-JP", "euc-jp", "\xa5\xb3\xa1\xbc\xa5\xc9", "コード"},
		{"ISO-2022-JP", "iso-2022-jp", "\x1b$B%3!<%I\x1b(B", "コード"},
		{"EUC-KR", "ks_c_5601-1987", "\xc4\xda", "코"},
		{"ISO-8859-8-I", "iso-8859-8-i", "\xf9", "ש"},
		{"UTF-16 with a byte order mark", "utf-16", "\xff\xfeK\x00\xfc\x00", "Kü"},
		{"UTF-16 big endian", "utf-16be", "\x00K\x00\xfc", "Kü"},
		{"UTF-16 little endian", "utf-16le", "K\x00\xfc\x00", "Kü"},
		{"UTF-32", "utf-32le", "K\x00\x00\x00", "K"},
		{"UTF-7", "utf-7", "Gr+APwA3w-e +- +2D3eAA- +", "Grüße + 😀 +"},
		{"windows-31j", "Windows-31J", "\x83R\x81[\x83h", "コード"},
		{"x-sjis", "x-sjis", "\x83R\x81[\x83h", "コード"},
		{"an extension of Windows in Shift JIS", "shift_jis", "\x87\x40", "①"},
		{"ISO-2022-JP with half-width letters", "iso-2022-jp", "\x1b(I:\x1b(B", "ｺ"},
		{"ISO-2022-JP of Microsoft", "cp50220", "\x1b$B%3!<%I\x1b(B", "コード"},
		{"EUC-KR by its page", "CP949", "\xc4\xda", "코"},
		{"ksc5601", "KSC5601", "\xc4\xda", "코"},
		{"ISO-2022-KR", "iso-2022-kr", "\x1b$)C\x0eDZ5e\x0f 7351", "코드 7351"},
		{"ISO-2022-KR that is not declared", "", "\x1b$)C\x0eDZ5e\x0f 7351", "코드 7351"},
		{"ISO-2022-CN", "iso-2022-cn", "\x1b$)A\x0eQiV$\x0f 7351", "验证 7351"},
		{"HZ", "hz-gb-2312", "~{QiV$~} 7351", "验证 7351"},
		{"GB 2312 with a character of GB 18030", "gb2312", "\x81\x30\x81\x30\xd1\xe9", "\u0080验"},
		{"GBK by its page", "cp936", "\xd1\xe9\xd6\xa4", "验证"},
		{"Big5 of Hong Kong", "Big5-HKSCS", "\xc5\xe7", "驗"},
		{"Big5 by its page", "cp950", "\xc5\xe7", "驗"},
		{"KOI8-U", "koi8-u", "\xeb\xcf\xc4 \xa4", "Код є"},
		{"a Macintosh", "macintosh", "\x9f\x80", "üÄ"},
		{"a Cyrillic Macintosh", "x-mac-cyrillic", "\x8a\xee\xe4", "Код"},
		{"a Central European Macintosh", "x-mac-ce", "\x97\x8b", "óč"},
		{"a Greek Macintosh", "x-mac-greek", "\xe1", "α"},
		{"a Turkish Macintosh", "x-mac-turkish", "\xdf", "ş"},
		{"DOS in Greece", "cp737", "\x98", "α"},
		{"DOS in Turkey", "IBM857", "\x9f", "ş"},
		{"DOS in Russia", "cp866", "\x8a\xae\xa4", "Код"},
		{"Thai", "TIS-620", "\xc3\xcb\xd1\xca", "รหัส"},
		{"Thai by its page", "windows-874", "\xc3\xcb\xd1\xca", "รหัส"},
		{"Vietnamese", "VISCII", "m\xe3 x\xe1c", "mã xác"},
		{"Vietnamese of Windows", "windows-1258", "\xd0", "Đ"},
		{"Arabic", "windows-1256", "\xd1\xe3\xd2", "رمز"},
		{"Hebrew in the order of reading", "ISO-8859-8-I", "\xf7\xe5\xe3", "קוד"},
		{"Greek", "ISO-8859-7", "\xea\xf9\xe4", "κωδ"},
		{"Baltic", "windows-1257", "\xe0", "ą"},
		{"latin 1 with the letters of Windows", "iso-8859-1", "\x93x\x94", "“x”"},
		{"an underscore for a hyphen", "ISO_8859-1", "\xfc", "ü"},
		{"no hyphen", "iso8859-2", "\xb3", "ł"},
		{"latin1", "latin1", "\xfc", "ü"},
		{"a year in the name", "ISO_8859-1:1987", "\xfc", "ü"},
		{"ASCII by its standard", "ANSI_X3.4-1968", "Gr\xfc\xdfe", "Grüße"},
		{"letters exchanged", "UFT-8", "Grüße", "Grüße"},
		{"quoted-printable in the header", "3Dutf-8", "Grüße", "Grüße"},
		{"another parameter in the quotes", "utf-8; format=flowed", "Grüße", "Grüße"},
		{"unknown-8bit", "unknown-8bit", "Gr\xfc\xdfe", "Grüße"},
		{"x-user-defined", "x-user-defined", "Gr\xfc\xdfe", "Grüße"},
		{"UTF-7 by its old name", "unicode-1-1-utf-7", "Gr+APwA3w-e", "Grüße"},
		{"IMAP's or any other name that is long", strings.Repeat("x", 300), "Gr\xfc\xdfe", "Grüße"},
		{"NUL goes", "utf-8", "a\x00b", "ab"},
		{"nothing", "utf-8", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := ToUTF8([]byte(tt.in), tt.charset); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestEveryCharsetKeepsTheText decodes bytes of all values by every name that is
// known: text is never empty where there are bytes, and always valid (M5).
func TestEveryCharsetKeepsTheText(t *testing.T) {
	t.Parallel()
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	names := []string{"", "utf-8", "x-unknown", "iso-8859-6", "ibm865", "windows-1255"}
	for name := range usualCharsets() {
		names = append(names, name)
	}
	for _, name := range names {
		got := ToUTF8(all, name)
		if !utf8.ValidString(got) || strings.IndexByte(got, 0) >= 0 || len(got) < 100 {
			t.Errorf("%q: got %q", name, got)
		}
		if got := ToUTF8([]byte("\xff"), name); got == "" && lookupCharset(name).kind != charsetWide {
			t.Errorf("%q: a byte is lost", name)
		}
	}
}

func TestToUTF8FindsISO2022(t *testing.T) {
	t.Parallel()
	// All bytes are ASCII; only the escape sequences identify the charset.
	if got := ToUTF8([]byte("\x1b$B%3!<%I\x1b(B"), "us-ascii"); got != "コード" {
		t.Errorf("got %q", got)
	}
}
