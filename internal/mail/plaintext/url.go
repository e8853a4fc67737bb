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
		r, n := utf8.DecodeRuneInString(s[end:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) || IsUnspaced(r) {
			break
		}
		end += n
	}
	if end = start + len(trimURL(s[start:end])); end == start {
		return 0
	}
	return end
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
// tabs that email clients insert.
func CleanHref(href string) string {
	if !strings.ContainsAny(href, " \n\r\t") {
		return href
	}
	return hrefCleaner.Replace(href)
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
