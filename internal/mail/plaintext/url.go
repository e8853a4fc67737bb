package plaintext

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// URLLen returns the length of the web address that s begins with, 0 for none.
// Punctuation at its end belongs to the sentence, and a bracket that it does
// not open to the text around it.
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

// SchemeLen returns the length of "http://" or "https://" at the beginning of
// s, 0 for neither.
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

// trimURL cuts off what stands at the end of an address without being of it.
func trimURL(s string) string {
	var open [3]int // brackets opened and not closed: ( [ {
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

// MaxURL is the longest address that counts as a link, in bytes. Those of mail
// trackers reach some thousands.
const MaxURL = 8 << 10

// IsWebLink reports whether an address is absolute and of the web.
func IsWebLink(href string) bool {
	n := SchemeLen(href)
	return n > 0 && len(href) > n && len(href) <= MaxURL
}

// CleanHref returns an address as a browser would open it: without the line
// breaks and tabs that mail programs put in.
func CleanHref(href string) string {
	if !strings.ContainsAny(href, " \n\r\t") {
		return href
	}
	return hrefCleaner.Replace(href)
}

var hrefCleaner = strings.NewReplacer("\n", "", "\r", "", "\t", "", " ", "%20")

// SplitURL returns the parts of a web address in lower case. The fragment is
// of the query: sign-in links carry their token there.
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
