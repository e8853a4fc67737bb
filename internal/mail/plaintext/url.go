package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// URLLen returns the length of the web address at the start of s, or 0. It
// excludes punctuation at the end and closing brackets without an opening one.
func URLLen(s string) int {
	start := SchemeLen(s)
	if start == 0 {
		return 0
	}
	end := start
	for end < len(s) {
		if s[end] < utf8.RuneSelf {
			if s[end] <= ' ' || s[end] == 0x7f || strings.IndexByte("<>\"`{}\\^", s[end]) >= 0 {
				break
			}
			end++
			continue
		}
		n := nonASCIILen(s, end, start)
		if n == 0 {
			break
		}
		end += n
	}
	if end = start + len(trimURL(s[start:end])); end == start {
		return 0
	}
	return end
}

// nonASCIILen returns how many bytes of the non-ASCII text at pos belong to the
// web address in s, whose host begins at start. Letters belong to it. Emoji, and
// letters of scripts without spaces, may be the text after the address: they
// belong to it within a path ("/検索?q=1", "/🎉"), but not in "/a谢谢".
func nonASCIILen(s string, pos, start int) int {
	end, symbols := pos, true
	for end < len(s) && s[end] >= utf8.RuneSelf {
		r, n := utf8.DecodeRuneInString(s[end:])
		switch {
		case IsUnspaced(r):
			symbols = false
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r) && r != 0xfe0f:
			if end == pos {
				return n
			}
		case !unicode.In(r, unicode.So, unicode.Sk) && r != 0xfe0f && r != 0x200d: // an emoji may end with 0xfe0f, and contain 0x200d
			return 0
		}
		end += n
	}
	begins, rest := pos == start || strings.IndexByte("/?#=&_-.", s[pos-1]) >= 0, s[end:]
	switch {
	case rest == "" || rest[0] <= ' ' || rest[0] == '>':
		if begins {
			return end - pos
		}
	case strings.IndexByte("/?#=&%", rest[0]) >= 0, (begins || symbols) && strings.IndexByte("._-", rest[0]) >= 0 && len(rest) > 1 && IsAlnum(rest[1]),
		symbols && IsAlnum(rest[0]) && SchemeLen(rest) == 0:
		return end - pos
	}
	return 0
}

// SchemeLen returns the length of "http://" or "https://" at the start of s, or
// 0.
func SchemeLen(s string) int {
	if len(s) < len("http://x") || s[0]|0x20 != 'h' {
		return 0
	}
	switch {
	case strings.EqualFold(s[:7], "http://"):
		return 7
	case strings.EqualFold(s[:8], "https://"):
		return 8
	}
	return 0
}

// trimURL removes trailing characters that are not part of an address.
func trimURL(s string) string {
	var open [3]int // unclosed brackets: ( [
	for _, c := range []byte(s) {
		switch c {
		case '(':
			open[0]++
		case ')':
			open[0]--
		case '[':
			open[1]++
		case ']':
			open[1]--
		}
	}
	for len(s) > 0 {
		switch s[len(s)-1] {
		case '.', ',', ';', ':', '!', '?', '\'', '*', '_', '~', '|':
		case ')':
			if open[0] >= 0 {
				return s
			}
			open[0]++
		case ']':
			if open[1] >= 0 {
				return s
			}
			open[1]++
		default:
			return s
		}
		s = s[:len(s)-1]
	}
	return s
}

// MaxURL is the maximum length of a link in bytes. Links of mail trackers can
// have some thousands.
const MaxURL = 8 << 10

// IsWebLink reports whether href is an absolute http or https URL.
func IsWebLink(href string) bool {
	n := SchemeLen(href)
	return n > 0 && len(href) > n && len(href) <= MaxURL
}

// CleanHref returns href as a browser reads it: without the line breaks and
// tabs that email clients insert, and with non-ASCII characters behind the host
// percent-encoded.
func CleanHref(href string) string {
	if strings.ContainsAny(href, " \n\r\t") {
		href = hrefCleaner.Replace(href)
	}
	if IsASCII(href) {
		return href
	}
	path := SchemeLen(href)
	if n := strings.IndexAny(href[path:], "/?#"); n >= 0 {
		path += n
	} else {
		path = len(href)
	}
	out := []byte(href[:path])
	for _, c := range []byte(href[path:]) {
		if c < utf8.RuneSelf {
			out = append(out, c)
		} else {
			out = append(out, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		}
	}
	return string(out)
}

var hrefCleaner = strings.NewReplacer("\n", "", "\r", "", "\t", "", " ", "%20")

// SplitURL returns the parts of a web address in lower case. query includes the
// fragment, which holds the token in some sign-in links.
func SplitURL(s string) (host, path, query string) {
	s = strings.ToLower(s[min(len(s), SchemeLen(s)):])
	host = s
	if i := strings.IndexAny(s, "/?#"); i >= 0 {
		host, path = s[:i], s[i:]
	}
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path, query = path[:i], path[i:]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:i]
	}
	return host, path, query
}
