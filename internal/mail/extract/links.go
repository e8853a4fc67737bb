package extract

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/mail"
	"github.com/postroom/postroom/internal/mail/htmltext"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// maxContext is how much text before a link is read, in bytes.
const maxContext = 200

// foundLink is one place of a link, with what its signs read.
type foundLink struct {
	m     *linkMessage
	value *linkValue

	url    string
	text   string // link text; "" in plain text
	before string // the text before it
	behind string // the text after it on its line
	button bool   // it looks like a button
	inHTML bool

	words, line, context, after wordKind // kinds of the words in them
	part                        wordKind // kinds of the parts of its address
	host, path, query           string
	bare                        bool // the link has no text of its own
	secret                      bool // its address has a random token
}

// textLinks returns the web addresses in a text, except those inside anchors
// with a web link of their own. anchors must be in order.
func textLinks(text string, anchors []htmltext.Link, lim mail.Limits) []foundLink {
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
		n := plaintext.URLLen(text[start:])
		pos = max(pos, start+n)
		url := strings.ReplaceAll(plaintext.CleanHref(text[start:start+n]), "&amp;", "&") // from HTML made into text
		for len(anchors) > 0 && anchors[0].End <= start {
			anchors = anchors[1:]
		}
		within := len(anchors) > 0 && anchors[0].Start <= start && plaintext.IsWebLink(plaintext.CleanHref(anchors[0].Href))
		if n == 0 || len(url) > plaintext.MaxURL || within {
			continue
		}
		found = append(found, foundLink{url: url, before: contextBefore(text, start), behind: firstLine(text[pos:])})
	}
	return found
}

// maxTails is the maximum number of line ends that joinLinks removes from a link.
const maxTails = 4

// joinLinks joins the links that line ends cut: in angle brackets, where a line
// end does not count, and elsewhere if the result is a link of the page.
func joinLinks(text string, p *htmltext.Page, budget *cpubudget.Budget) string {
	if !strings.Contains(text, "://") {
		return text
	}
	whole := map[string]bool{}
	for i := 0; p != nil && i < len(p.Links); i++ {
		whole[plaintext.CleanHref(p.Links[i].Href)] = true
	}
	var joined strings.Builder
	done := 0
	for pos := 0; !budget.Spent(); {
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
		link, end := "", start
		for range maxTails + 1 {
			n := strings.IndexFunc(text[end:], endsLink)
			if n < 0 {
				n = len(text) - end
			}
			first := link == ""
			if first {
				pos = end + n // do not read it again
			}
			if !first && strings.Contains(text[end:end+n], "://") || len(link)+n > plaintext.MaxURL {
				break
			}
			tail := !first && isTail(link, text[end:end+n], text[end+n:])
			link, end = link+text[end:end+n], end+n
			if known := plaintext.URLLen(link); tail || !first && (whole[plaintext.CleanHref(link[:known])] || opensLink(text[:start]) && strings.HasPrefix(text[end:], ">")) {
				joined.WriteString(text[done:start] + link)
				done, pos = end, end
				break
			}
			rest := strings.TrimLeft(text[end:], " \t\r")
			if !strings.HasPrefix(rest, "\n") {
				break
			}
			end = len(text) - len(strings.TrimLeft(rest[1:], " \t"))
		}
	}
	if done == 0 {
		return text
	}
	return joined.String() + text[done:]
}

// isTail reports whether a line is the rest of a link: the link ends within its path or
// query, and the line is one random token.
func isTail(link, line, after string) bool {
	return strings.IndexByte("/=&?-_%", link[len(link)-1]) >= 0 && hasSecret(strings.ToLower(line)) &&
		strings.HasPrefix(strings.TrimLeft(after+"\n", " \t\r"), "\n")
}

// opensLink reports whether a text ends with what opens a link in angle brackets
// (RFC 3986 appendix C).
func opensLink(before string) bool {
	return strings.HasSuffix(before, "<") || len(before) >= 5 && strings.EqualFold(before[len(before)-5:], "<url:")
}

// endsLink reports whether r cannot be part of a link.
func endsLink(r rune) bool { return r <= ' ' || strings.ContainsRune("<>\"", r) }

// schemeStart returns the start of the "http" or "https" before "://", or -1.
func schemeStart(text string, at int) int {
	for _, n := range []int{5, 4} {
		if at >= n && strings.EqualFold(text[at-n:at], "https"[:n]) {
			return at - n
		}
	}
	return -1
}

// contextBefore returns the end of the text before pos, up to an empty line.
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

// firstLine returns the beginning of the first line of s.
func firstLine(s string) string {
	s, _, _ = strings.Cut(plaintext.Truncate(s, maxContext/2), "\n")
	return s
}

// linkMessage is what the signs of all links of a message share.
type linkMessage struct {
	subject wordKind // kinds of the words in the subject
	codes   uint32   // kinds of its words about codes
	code    bool     // the message has a code to type
	html    bool
	links   []*foundLink
	values  map[string]*linkValue
	open    int // values that are neither ruled out nor home pages
}

// linkValue is a link with what its places have in common.
type linkValue struct {
	url    string
	order  int
	places int
	veto   string
}

// readLinks finds the links of a message.
func readLinks(subject, text string, p *htmltext.Page, lim mail.Limits) *linkMessage {
	m := &linkMessage{html: p != nil, values: map[string]*linkValue{}}
	var all []foundLink
	if p != nil {
		all = append(pageLinks(p), textLinks(string(p.Text), p.Links, lim)...)
		for i := range all {
			all[i].inHTML = true
		}
	}
	hrefs := make([]string, len(all))
	for i := range all {
		hrefs[i] = all[i].url
	}
	slices.Sort(hrefs)
	for _, l := range textLinks(text, nil, lim) {
		if !l.isCut(hrefs) {
			all = append(all, l)
		}
	}
	if len(all) == 0 {
		return m
	}
	m.subject = knownLinkWords().kindsIn(strings.ToLower(subject))
	kept := 0
	for i := range all {
		if lim.Budget.Spent() {
			break
		}
		l := &all[i]
		v := m.values[l.url]
		if v == nil && kept == lim.Links {
			continue
		}
		l.m = m
		l.read()
		if v == nil {
			v = &linkValue{url: l.url, order: len(m.values), veto: l.vetoOf()}
			m.values[l.url] = v
			kept += truth(v.veto == "")
			m.open += truth(v.veto == "" && !isHomePage(l.url))
		}
		v.places++
		l.value = v
		m.links = append(m.links, l)
	}
	return m
}

// isCut reports whether a link of the plain text ends within a word of a link of
// the page, which hrefs has in order: a line end or an ellipsis cut it.
func (l *foundLink) isCut(hrefs []string) bool {
	i, same := slices.BinarySearch(hrefs, l.url)
	if same || i == len(hrefs) || !strings.HasPrefix(hrefs[i], l.url) || !plaintext.IsAlnum(l.url[len(l.url)-1]) || !plaintext.IsAlnum(hrefs[i][len(l.url)]) {
		return false
	}
	after := strings.TrimSpace(l.behind)
	return after == "" || strings.HasPrefix(after, "...") || strings.HasPrefix(after, "…")
}

// pageLinks returns the web links of a page.
func pageLinks(p *htmltext.Page) []foundLink {
	links := make([]foundLink, 0, len(p.Links))
	for i := range p.Links {
		l := &p.Links[i]
		href := plaintext.CleanHref(l.Href)
		if !plaintext.IsWebLink(href) {
			continue
		}
		before := string(p.Text[max(0, l.Start-maxContext-utf8.UTFMax):l.Start])
		links = append(links, foundLink{url: href, text: p.LinkText(l), button: l.Button, before: contextBefore(before, len(before)), behind: firstLine(string(p.Text[l.End:min(len(p.Text), l.End+maxContext)]))})
	}
	return links
}
