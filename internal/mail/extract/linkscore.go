package extract

import (
	"cmp"
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// actionScore is the minimum score of an action link.
const actionScore = 6

// maxActionWords is the maximum length of a button's text, in bytes.
const maxActionWords = 80

// linkSigns is what a link's text, context and address say about it.
type linkSigns struct {
	words, line, context wordKind // kinds of the words in them
	after                wordKind
	part                 wordKind
	host, path, query    string
	bare                 bool // the link has no text of its own
}

func (l *foundLink) signs() linkSigns {
	table := knownLinkWords()
	words := strings.ToLower(plaintext.Truncate(l.words, 2*maxActionWords))
	context := strings.ToLower(l.context)
	s := linkSigns{
		bare:    words == "" || plaintext.SchemeLen(words) > 0 || namesTarget(words, l.url),
		line:    table.kindsIn(lastLine(context, maxLineContext)),
		context: table.kindsIn(context),
		after:   table.kindsIn(strings.ToLower(l.after)),
	}
	if !s.bare {
		s.words = table.kindsIn(words)
	}
	if len(words) > maxActionWords {
		s.words &^= actionWord // a sentence, not a button
	}
	s.host, s.path, s.query = plaintext.SplitURL(l.url)
	parts := knownLinkParts()
	s.part = parts.kindsIn(s.path) | parts.kindsIn(s.query)
	return s
}

// weigh sets the score of a link. subject holds the kinds of words in the
// subject. It returns the evidence if explain is set.
func (l *foundLink) weigh(s *linkSigns, subject wordKind, explain bool) (evidence []Evidence) {
	add := func(sign string, weight int) {
		l.score += weight
		if explain {
			evidence = append(evidence, Evidence{sign, weight})
		}
	}
	asks := s.part&actionWord != 0 && subject&doneWord == 0
	secret := hasSecret(s.path) || hasSecret(s.query)
	switch points := s.bare || s.words&pointWord != 0; {
	case s.words&actionWord != 0:
		add("its text asks to act", 6)
		asks = asks || l.button || secret || subject&actionWord != 0 || s.query != "" || !l.inHTML || (s.line|s.context)&pointWord != 0
	case points && (s.line&actionWord != 0 || (s.context|s.after)&actionWord != 0 && (s.context|s.words)&pointWord != 0):
		add("the words near ask to act", 5)
		asks = asks || secret || !s.bare || subject&actionWord != 0 && s.line&pointWord != 0 && !isAccountPage(s.path)
	case points && (s.context&pointWord != 0 || !s.bare):
		add("the words near point to it", 3)
	}
	title := isTitle(l.words) && subject&actionWord == 0 && !secret
	if l.button && subject&actionWord != 0 && s.words&(restWord|footerWord) == 0 {
		add("it looks like a button", 3)
		asks = true
	}
	if s.part&actionWord != 0 {
		add("a word of action in its address", 3)
	}
	if secret {
		add("a random token in its address", 2)
	}
	if subject&actionWord != 0 {
		add("the subject asks to act", 2)
		asks = asks || secret && !s.bare && s.words&pointWord != 0
	}
	if s.words&restWord != 0 || s.bare && s.line&restWord != 0 {
		add("words of a side link", -6)
	}
	if isHomePage(l.url) {
		add("a home page", -4)
	}
	only := secret && knownLinkParts().kindsIn(strings.ReplaceAll(s.path+s.query, "token", ""))&actionWord != 0 && (subject&doneWord) == 0 && (s.words&restWord) == 0 && !(s.bare && s.line&restWord != 0)
	switch {
	case s.line&unlessWord != 0 && !l.button && !secret:
		asks, only = false, false
		add("only if the reader did not do it: never the action link", 0)
	case isSocial(s.host) && s.part&actionWord == 0: // an invitation to follow, whatever its words
		asks, only = false, false
		add("a social network or app store: never the action link", 0)
	case isHelpHost(s.host) && isHelpPath(s.path):
		asks, only = false, false
		add("a help article: never the action link", 0)
	case title:
		asks, only = false, false
		add("a title rather than a request: never the action link", 0)
	}
	l.action, l.only = asks && l.score >= actionScore, only
	return evidence
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

// isFooter reports whether a link is a usual footer link, such as an
// unsubscribe link. subject holds the kinds of words in the subject.
func (s *linkSigns) isFooter(subject wordKind) bool {
	if s.words&footerWord != 0 {
		return true
	}
	if (s.bare || s.words&pointWord != 0) && s.line&footerWord != 0 && s.line&actionWord == 0 {
		return true
	}
	if s.words&actionWord != 0 && !strings.Contains(s.path, "unsub") && !strings.Contains(s.query, "unsub") {
		return false
	}
	if s.part&footerWord != 0 {
		// Unless the message asks to confirm it.
		return subject&s.line&s.part&actionWord == 0
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(s.path, "/"), "/")
	depth := strings.Count(strings.Trim(s.path, "/"), "/") + 1
	if helpHosts[first] && depth <= 2 && s.part&actionWord == 0 && s.line&actionWord == 0 {
		return true
	}
	switch {
	case isSocial(s.host):
		return depth <= 2
	case isHelpHost(s.host):
		return s.words&restWord != 0 || depth == 1 || isHelpPath(s.path)
	}
	return false
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

// sortLinks sorts action links first, then by score. It keeps the order of
// equal links.
func sortLinks(links []foundLink) {
	slices.SortStableFunc(links, func(a, b foundLink) int {
		return cmp.Or(boolOrder(b.action, a.action), cmp.Compare(b.score, a.score))
	})
}
