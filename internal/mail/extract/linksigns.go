package extract

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// maxActionWords is the maximum length of a button's text, in bytes.
const maxActionWords = 80

// read looks up the words in and around a link and the parts of its address.
func (l *foundLink) read() {
	table := knownLinkWords()
	words := strings.ToLower(plaintext.Truncate(l.text, 2*maxActionWords))
	context := strings.ToLower(l.before)
	l.bare = words == "" || plaintext.SchemeLen(words) > 0 || namesTarget(words, l.url)
	l.line, l.context = table.kindsIn(lastLine(context, maxLineContext)), table.kindsIn(context)
	l.after = table.kindsIn(strings.ToLower(l.behind))
	if !l.bare {
		l.words = table.kindsIn(words)
	}
	l.host, l.path, l.query = plaintext.SplitURL(l.url)
	parts := knownLinkParts()
	l.part = parts.kindsIn(l.path) | parts.kindsIn(l.query)
	l.secret = hasSecret(l.path) || hasSecret(l.query)
}

// linkSigns are the signs of a place of a link.
var linkSigns = newTable([]sign[foundLink]{
	{name: "text", doc: "words of its text", values: linkNamesOf, bits: func(l *foundLink) uint32 { return linkBits(l.words) }},
	{name: "line", doc: "words before it on its line", values: linkNamesOf, bits: func(l *foundLink) uint32 { return linkBits(l.line) }},
	{name: "context", doc: "words of its paragraph before it", values: linkNamesOf, bits: func(l *foundLink) uint32 { return linkBits(l.context) }},
	{name: "after", doc: "words after it on its line", values: linkNamesOf, bits: func(l *foundLink) uint32 { return linkBits(l.after) }},
	{name: "address", doc: "words of its path and query", values: linkNamesOf, bits: func(l *foundLink) uint32 { return linkBits(l.part) }},
	{name: "form", doc: "how it looks", values: []string{"bare", "button", "words"}, of: (*foundLink).form},
	{name: "asks", doc: "what asks to follow it", values: []string{"its text", "its line, it points", "its context, it points", "its line", "its context"}, of: (*foundLink).asks},
	{name: "target", doc: "what its address has", values: []string{"token", "word of action", "both", "home page", "query"}, of: (*foundLink).target},
	{name: "subject", doc: "what the subject says", values: []string{"action", "done", "both"}, of: func(l *foundLink) int {
		return truth(l.m.subject&actionWord != 0) + 2*truth(l.m.subject&doneWord != 0)
	}},
	{name: "only", doc: "the number of other links outside the footer", values: []string{"none", "1", "2", "more"}, of: (*foundLink).others},
	{name: "order", doc: "its rank among them", values: countNames, of: func(l *foundLink) int { return count(l.value.order) }},
	{name: "repeated", doc: "how often it occurs", values: countNames, of: func(l *foundLink) int { return count(l.value.places - 1) }},
	{name: "depth", doc: "the segments of its path", values: bucketNames, of: func(l *foundLink) int { return bucket(strings.Count(strings.Trim(l.path, "/"), "/")) }},
	{name: "text length", doc: "the length of its text", values: bucketNames, of: func(l *foundLink) int { return bucket(len(l.text) / 8) }},
	{name: "address length", doc: "the length of its address", values: bucketNames, of: func(l *foundLink) int { return bucket(len(l.url) / 16) }},
	flag("side link", "words of a side link, in its text or before it", func(l *foundLink) bool { return l.words&restWord != 0 || l.bare && l.line&restWord != 0 }),
	flag("account page", "a permanent page of an account", func(l *foundLink) bool { return isAccountPage(l.path) }),
	flag("help", "a help centre", func(l *foundLink) bool { return isHelpHost(l.host) }),
	flag("title", "its text is a title rather than a request", func(l *foundLink) bool { return isTitle(l.text) }),
	flag("plain text", "it is in the plain text", func(l *foundLink) bool { return !l.inHTML }),
}, [][2]string{
	{"asks", "target"}, {"asks", "subject"}, {"asks", "form"}, {"target", "form"}, {"target", "subject"}, {"form", "subject"}, {"only", "target"}, {"only", "asks"},
	{"asks", "account page"}, {"title", "subject"}, {"only", "form"}, {"order", "form"},
})

// noLinkSigns are the signs of a message without an action link.
var noLinkSigns = newTable([]sign[linkMessage]{
	flag("always", "the message", func(*linkMessage) bool { return true }),
	flag("code", "it has a code to type", func(m *linkMessage) bool { return m.code }),
	flag("only text", "it has no HTML", func(m *linkMessage) bool { return !m.html }),
	{name: "subject", doc: "words of the subject", values: linkNamesOf, bits: func(m *linkMessage) uint32 { return linkBits(m.subject) }},
	{name: "subject of codes", doc: "words about codes in the subject", values: kindNames[1:], bits: func(m *linkMessage) uint32 { return m.codes }},
	{name: "links", doc: "the number of links", values: bucketNames, of: func(m *linkMessage) int { return bucket(len(m.values)) }},
}, nil)

// linkNamesOf are the names of the kinds of words in and around links.
var linkNamesOf = []string{"action", "point", "rest", "footer", "done", "unless"}

// linkBits returns kinds as the bits of a sign.
func linkBits(kinds wordKind) uint32 { return uint32(kinds) << 1 }

// form returns how a link looks.
func (l *foundLink) form() int {
	switch {
	case l.button:
		return 2
	case l.bare:
		return 1
	}
	return 3
}

// asks returns which words ask to follow a link.
func (l *foundLink) asks() int {
	points := l.bare || l.words&pointWord != 0
	switch {
	case l.words&actionWord != 0 && len(l.text) <= maxActionWords:
		return 1
	case points && l.line&actionWord != 0:
		return 2
	case points && (l.context|l.after)&actionWord != 0:
		return 3
	case l.line&actionWord != 0:
		return 4
	case (l.context|l.after)&actionWord != 0:
		return 5
	}
	return 0
}

// target returns what the address of a link has.
func (l *foundLink) target() int {
	switch {
	case l.secret && l.part&actionWord != 0:
		return 3
	case l.secret:
		return 1
	case l.part&actionWord != 0:
		return 2
	case isHomePage(l.url):
		return 4
	case l.query != "":
		return 5
	}
	return 0
}

// others returns one plus the number of other links that are not ruled out.
func (l *foundLink) others() int { return min(l.m.open, 4) }

// vetoOf returns why a link is not listed, or "".
func (l *foundLink) vetoOf() string {
	if l.isFooter() {
		return "a footer link"
	}
	return ""
}

// neverAction returns why a link that is listed is never the action link, or "".
func (l *foundLink) neverAction() string {
	switch {
	case isSocial(l.host) && l.part&actionWord == 0: // an invitation to follow, whatever its words
		return "a social network or app store"
	case isHelpHost(l.host) && isHelpPath(l.path):
		return "a help article"
	case l.line&unlessWord != 0 && !l.button && !l.secret:
		return "only if the reader did not do it"
	}
	return ""
}

// isHomePage reports whether a web address has neither a path nor a query.
func isHomePage(url string) bool {
	_, path, query := plaintext.SplitURL(url)
	return strings.Trim(path, "/") == "" && query == ""
}

// accountPages are segments of paths to permanent pages of an account.
var accountPages = plaintext.WordSet(`settings|security|account|accounts|profile|preferences|devices|activity|sessions|billing|notifications|dashboard|home|inbox|orders`)

// isAccountPage reports whether a path leads to a permanent page of an account.
func isAccountPage(path string) bool {
	for part := range strings.SplitSeq(plaintext.Truncate(path, maxContext), "/") {
		if accountPages[part] {
			return true
		}
	}
	return false
}

// minTitle is the number of words that make the text of a link a title.
const minTitle = 5

// isTitle reports whether the text of a link is long, as titles of articles are.
func isTitle(text string) bool { return strings.Count(strings.TrimSpace(text), " ") >= minTitle-1 }

// namesTarget reports whether the lower-case text of a link is the beginning of
// its address without "https://", perhaps truncated.
func namesTarget(text, url string) bool {
	host, _, _ := plaintext.SplitURL(url)
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text, "www."), strings.TrimPrefix(host, "www."))
	return ok && host != "" && (rest == "" || rest[0] == '/') && !strings.Contains(rest, " ")
}

// isSocial reports whether a host is that of a social network or an app store.
func isSocial(host string) bool {
	return slices.ContainsFunc(socialHosts, func(h string) bool { return host == h || strings.HasSuffix(host, "."+h) })
}

func isHelpHost(host string) bool {
	label, _, _ := strings.Cut(host, ".")
	return helpHosts[label]
}

// helpHosts are the first labels of the hosts of help centres.
var helpHosts = plaintext.WordSet(`help|support|faq|hilfe|aide|ayuda|ajuda|aiuto|hjelp|hjalp|pomoc|yardim|bantuan|helpdesk|helpcenter|kb|docs`)

// isHelpPath reports whether a path belongs to a help centre.
func isHelpPath(path string) bool {
	for _, part := range []string{"/article", "/artigo", "/articulo", "/articol", "/artikel", "/artyk", "/hc/", "/docs", "/kb/", "/topics", "/answer"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// maxLineContext is how much of the line before a link is read, in bytes.
const maxLineContext = 80

// lastLine returns the end of the last line of s, at most n bytes.
func lastLine(s string, n int) string {
	s = s[strings.LastIndexByte(s, '\n')+1:]
	if len(s) > n {
		s = strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}

// hasSecret reports whether a part of an address contains what looks like a
// random token: letters and digits in one long word. Words joined by hyphens
// are a page title.
func hasSecret(s string) bool {
	run, digits, letters := 0, 0, 0
	for i := 0; i <= len(s); i++ {
		var c byte
		if i < len(s) {
			c = s[i]
		}
		switch {
		case plaintext.IsDigit(c):
			digits++
		case 'a' <= c && c <= 'z':
			letters++
		default:
			if run >= 8 && digits >= 2 && letters >= 2 || run >= 20 && digits > 0 {
				return true
			}
			run, digits, letters = -1, 0, 0
		}
		run++
	}
	return false
}

// isFooter reports whether a link is a usual footer link, such as an
// unsubscribe link. subject holds the kinds of words in the subject.
func (l *foundLink) isFooter() bool {
	if l.words&footerWord != 0 {
		return true
	}
	if (l.bare || l.words&pointWord != 0) && l.line&footerWord != 0 && l.line&actionWord == 0 {
		return true
	}
	if l.words&actionWord != 0 && !strings.Contains(l.path, "unsub") && !strings.Contains(l.query, "unsub") {
		return false
	}
	if l.part&footerWord != 0 {
		// Unless the message asks to confirm it.
		return l.m.subject&l.line&l.part&actionWord == 0
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(l.path, "/"), "/")
	depth := strings.Count(strings.Trim(l.path, "/"), "/") + 1
	if helpHosts[first] && depth <= 2 && l.part&actionWord == 0 && l.line&actionWord == 0 {
		return true
	}
	switch {
	case isSocial(l.host):
		return depth <= 2
	case isHelpHost(l.host):
		return l.words&restWord != 0 || depth == 1 || isHelpPath(l.path)
	}
	return false
}
