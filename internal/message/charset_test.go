package message

import "testing"

// TestToUTF8 decodes text as mails label it, rightly or not (M5).
func TestToUTF8(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, charset, in, want string }{
		{"UTF-8", "utf-8", "Grüße", "Grüße"},
		{"UTF-8 with a byte order mark", "UTF8", "\xef\xbb\xbfx", "x"},
		{"broken UTF-8", "utf-8", "a\xffb", "a\uFFFDb"},
		{"no charset, UTF-8", "", "Grüße", "Grüße"},
		{"no charset, windows-1252", "", "Gr\xfc\xdfe \x80", "Grüße €"},
		{"ASCII that is UTF-8", "US-ASCII", "Grüße", "Grüße"},
		{"ASCII that is windows-1252", "us-ascii", "Gr\xfc\xdfe", "Grüße"},
		{"an unknown charset", "x-nobody", "Gr\xfc\xdfe", "Grüße"},
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
		{"NUL goes", "utf-8", "a\x00b", "ab"},
		{"nothing", "utf-8", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := toUTF8([]byte(tt.in), tt.charset); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestToUTF8FindsISO2022(t *testing.T) {
	t.Parallel()
	// All of its bytes are ASCII, so only the escape sequences tell.
	if got := toUTF8([]byte("\x1b$B%3!<%I\x1b(B"), "us-ascii"); got != "コード" {
		t.Errorf("got %q", got)
	}
}
