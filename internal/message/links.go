package message

import (
	"bytes"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxLinks   = 200     // of one mail
	maxLinkLen = 8 << 10 // bytes; mail trackers reach some thousands
	maxContext = 200     // bytes of text before a link that say what it is for
)

// urlLen returns the length of the web address that s begins with, 0 for none.
// Punctuation at its end belongs to the sentence, and a bracket that it does
// not open to the text around it.
func urlLen(s []byte) int {
	start := schemeLen(s)
	if start == 0 {
		return 0
	}
	end := start
	for end < len(s) {
		if s[end] < utf8.RuneSelf {
			if s[end] <= ' ' || s[end] == 0x7f || bytes.IndexByte([]byte("<>\"`{}|\\^"), s[end]) >= 0 {
				break
			}
			end++
			continue
		}
		r, n := utf8.DecodeRune(s[end:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) || isUnspaced(r) {
			break
		}
		end += n
	}
	if end = start + len(trimURL(s[start:end])); end == start {
		return 0
	}
	return end
}

// schemeLen returns the length of "http://" or "https://" at the beginning of
// s, 0 for neither.
func schemeLen(s []byte) int {
	if len(s) < len("http://x") || s[0]|0x20 != 'h' {
		return 0
	}
	switch {
	case bytes.EqualFold(s[:7], []byte("http://")):
		return 7
	case bytes.EqualFold(s[:8], []byte("https://")):
		return 8
	}
	return 0
}

// trimURL cuts off what stands at the end of an address without being of it.
func trimURL(s []byte) []byte {
	var open [3]int // brackets opened and not closed: ( [ {
	for _, c := range s {
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
		case '.', ',', ';', ':', '!', '?', '\'', '*', '_', '~':
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

// isWebLink reports whether an address is absolute and of the web.
func isWebLink(href string) bool {
	n := schemeLen([]byte(head(href, 9)))
	return n > 0 && len(href) > n && len(href) <= maxLinkLen
}

// foundLink is a link with what its mail says about it.
type foundLink struct {
	url     string
	words   string // what it says itself; "" in plain text
	context string // what stands before it
	score   int
	action  bool
}

// textLinks returns the web addresses that stand in a text.
func textLinks(text string, limit int) []foundLink {
	var found []foundLink
	for pos := 0; len(found) < limit; {
		i := strings.Index(text[pos:], "://")
		if i < 0 {
			break
		}
		at := pos + i
		pos = at + 3
		start := schemeStart(text, at)
		if start < 0 {
			continue
		}
		n := urlLen([]byte(text[start:min(len(text), start+maxLinkLen+1)]))
		if n == 0 || n > maxLinkLen {
			continue
		}
		pos = start + n
		found = append(found, foundLink{url: text[start:pos], context: contextBefore(text, start)})
	}
	return found
}

// schemeStart returns where the scheme before "://" begins, -1 when it is not
// one of the web.
func schemeStart(text string, at int) int {
	for _, n := range []int{5, 4} {
		if at >= n && strings.EqualFold(text[at-n:at], "https"[:n]) {
			return at - n
		}
	}
	return -1
}

// contextBefore returns the end of what stands before pos: its line and the
// one above.
func contextBefore(text string, pos int) string {
	from := max(0, pos-maxContext)
	for from < pos && !utf8.RuneStart(text[from]) {
		from++
	}
	context := strings.TrimRight(text[from:pos], " \t\r\n<(")
	if i := strings.LastIndex(context, "\n\n"); i >= 0 {
		context = context[i:]
	}
	return context
}

// linksOf returns the links of a mail, each once, without those that every
// mail has at its foot, the one that is meant to be followed first.
func linksOf(subject, text string, p *page, limit int) []foundLink {
	var all []foundLink
	if p != nil {
		for i := range p.links {
			l := &p.links[i]
			if href := cleanHref(l.href); isWebLink(href) {
				all = append(all, foundLink{url: href, words: p.words(l), context: contextBefore(string(p.text[max(0, l.start-maxContext-8):l.start]), min(l.start, maxContext+8))})
			}
		}
		all = append(all, textLinks(string(p.text), limit)...)
	}
	all = append(all, textLinks(text, limit)...)
	seen := make(map[string]int, len(all))
	kept := all[:0]
	for _, l := range all {
		l.weigh(subject)
		at, known := seen[l.url]
		switch {
		case known && at >= 0 && l.score > kept[at].score:
			kept[at] = l
		case known || l.isFooter() || len(kept) == limit:
			if !known {
				seen[l.url] = -1
			}
		default:
			seen[l.url] = len(kept)
			kept = append(kept, l)
		}
	}
	sortLinks(kept)
	return kept
}

// cleanHref returns an address as a browser would open it: without the line
// breaks and tabs that mail programs put in.
func cleanHref(href string) string {
	href = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' || r == '\t' {
			return -1
		}
		return r
	}, href)
	return strings.ReplaceAll(href, " ", "%20")
}

// parseLink returns the parts of an address in lower case.
func parseLink(s string) (host, path, query string) {
	u, err := url.Parse(s)
	if err != nil {
		return "", strings.ToLower(s), ""
	}
	query = u.RawQuery
	if u.Fragment != "" {
		query += "&" + u.Fragment
	}
	return strings.ToLower(u.Hostname()), strings.ToLower(u.EscapedPath()), strings.ToLower(query)
}
