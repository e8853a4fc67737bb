package message

import (
	"strings"
	"unicode/utf8"
)

const (
	maxLinks   = 200     // of one mail
	maxLinkLen = 8 << 10 // bytes; mail trackers reach some thousands
	maxContext = 200     // bytes of text before a link that say what it is for
)

// foundLink is a link with what its mail says about it.
type foundLink struct {
	url     string
	words   string // what it says itself; "" in plain text
	context string // what stands before it
	after   string // what follows on its line
	score   int
	action  bool
}

// textLinks returns the web addresses that stand in a text, but for those within
// anchors, whose own address is the one that counts. The anchors are in order.
func textLinks(text string, anchors []pageLink, lim Limits) []foundLink {
	var found []foundLink
	for pos := 0; len(found) < lim.Links && !lim.Budget.Spent(); {
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
		n := urlLen(text[start:])
		pos = max(pos, start+n)
		for len(anchors) > 0 && anchors[0].end <= start {
			anchors = anchors[1:]
		}
		within := len(anchors) > 0 && anchors[0].start <= start && isWebLink(cleanHref(anchors[0].href))
		if n == 0 || n > maxLinkLen || within {
			continue
		}
		found = append(found, foundLink{url: text[start:pos], context: contextBefore(text, start), after: firstLine(text[pos:])})
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

// firstLine returns what s begins with up to a line end, some words of it.
func firstLine(s string) string {
	s, _, _ = strings.Cut(head(s, maxContext/2), "\n")
	return s
}

// linksOf returns the links of a mail, each once, without those that every
// mail has at its foot, the one that is meant to be followed first.
func linksOf(subject, text string, p *page, lim Limits) []foundLink {
	var all []foundLink
	if p != nil {
		all = append(p.found(), textLinks(string(p.text), p.links, lim)...)
	}
	all = append(all, textLinks(text, nil, lim)...)
	if len(all) == 0 {
		return nil
	}
	asked := knownLinkWords().kindsIn(strings.ToLower(subject))
	seen := make(map[string]int, len(all)) // index in kept, or -1
	kept := all[:0]
	for _, l := range all {
		if lim.Budget.Spent() {
			break
		}
		at, known := seen[l.url]
		if known && at < 0 {
			continue
		}
		signs := l.signs()
		if !known && (signs.isFooter(asked) || len(kept) == lim.Links) {
			seen[l.url] = -1
			continue
		}
		l.weigh(&signs, asked)
		switch {
		case !known:
			seen[l.url] = len(kept)
			kept = append(kept, l)
		case l.score > kept[at].score:
			kept[at] = l
		}
	}
	sortLinks(kept)
	return kept
}

// found returns the links that can be clicked on a page.
func (p *page) found() []foundLink {
	links := make([]foundLink, 0, len(p.links))
	for i := range p.links {
		l := &p.links[i]
		href := cleanHref(l.href)
		if !isWebLink(href) {
			continue
		}
		before := string(p.text[max(0, l.start-maxContext-utf8.UTFMax):l.start])
		links = append(links, foundLink{url: href, words: p.words(l), context: contextBefore(before, len(before)), after: firstLine(string(p.text[l.end:min(len(p.text), l.end+maxContext)]))})
	}
	return links
}
