package mailhtml

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

const (
	// maxFindings is how many findings of one kind Sanitize returns.
	maxFindings = 50
	// maxExcerpt is how much of a removed or hidden text a finding quotes, in
	// characters.
	maxExcerpt = 300
	// tooLongBy is how much space the end tags need when a message is cut.
	tooLongBy = 4 << 10
)

// Sanitized is the HTML of an outbound message, and what a person who approves the message
// should know.
type Sanitized struct {
	// HTML contains only what Clean shows. Sanitizing it again changes
	// nothing.
	HTML string
	// Removed lists what was removed.
	Removed []Removed
	// Hidden is the text that readers do not see, or only some of them.
	Hidden []Hidden
	// Links are the addresses that links lead to, each once.
	Links []Link
}

// Removed is a kind of element, attribute or style that was removed.
type Removed struct {
	What  string // such as "<svg>", "attribute onclick" or "style position"
	Text  string // the beginning of the text in it
	Count int
}

// Link is the target of a link.
type Link struct {
	URL  string
	Host string // empty for an email address or telephone number
	// Says is the host of another site that the text of the link names.
	Says string
}

// Sanitize returns the HTML of a message in the form in which it may be sent: written from the
// same lists as Clean, but with the original addresses of its images, and with the styles that
// Clean changes for legibility. Its time grows only with the length.
func Sanitize(source string) Sanitized {
	out, rest := sanitize(source, false), []Removed(nil)
	if len(out.HTML) > MaxInput {
		rest = []Removed{{What: "the end of the HTML, which is too long", Count: 1}}
		again := sanitize(out.HTML[:MaxInput-tooLongBy], false)
		out.HTML = again.HTML
	}
	var ok bool
	if out.Hidden, ok = findHidden(out.HTML); !ok {
		rest = append(rest, Removed{What: "<style>, which is too complex", Count: 1})
		out.HTML = sanitize(out.HTML, true).HTML
		out.Hidden, _ = findHidden(out.HTML)
	}
	out.Removed = append(rest, out.Removed...)
	return out
}

func sanitize(source string, withoutSheet bool) Sanitized {
	c := &cleaner{body: &strings.Builder{}, remote: map[string]bool{}, parts: map[string]string{}, sending: &sending{}}
	c.options = Options{Inline: func(id string) string { return "cid:" + id }, Remote: func(u string) string { return u }}
	page := c.clean(source)
	out := Sanitized{HTML: page.Body, Removed: c.sending.removed, Links: c.sending.links}
	if page.Cut {
		out.Removed = append([]Removed{{What: "the end of the HTML, which is too long", Count: 1}}, out.Removed...)
	}
	if page.Style != "" && !withoutSheet {
		out.HTML = "<style>\n" + page.Style + "</style>" + out.HTML
	}
	return out
}

// AllText returns the text of HTML from Sanitize, hidden or not, with each piece on its own
// line.
func AllText(source string) string {
	var b strings.Builder
	each(source, func(_ *html.Tokenizer, inStyle bool, t html.Token) {
		if t.Type == html.TextToken && !inStyle && visible(t.Data) {
			b.WriteString(strings.TrimSpace(t.Data))
			b.WriteByte('\n')
		}
	})
	return b.String()
}

// excerpt returns the beginning of a text on one line.
func excerpt(s string) string {
	s = strings.Join(strings.Fields(s[:min(len(s), 8*maxExcerpt)]), " ")
	if r := []rune(s); len(r) > maxExcerpt {
		return string(r[:maxExcerpt]) + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// sending collects the findings about an outbound message.
type sending struct {
	removed []Removed
	byWhat  map[string]int
	links   []Link
	seen    map[Link]bool
}

// remove records something that is removed. It may be called on nil.
func (s *sending) remove(what, text string) {
	if s == nil {
		return
	}
	i, there := s.byWhat[what]
	if !there {
		if len(s.removed) == maxFindings {
			return
		}
		if s.byWhat == nil {
			s.byWhat = map[string]int{}
		}
		i = len(s.removed)
		s.byWhat[what] = i
		s.removed = append(s.removed, Removed{What: what})
	}
	s.removed[i].Count++
	s.addText(what, text)
}

// removeStyle records a removed style. It may be called on nil.
func (s *sending) removeStyle(name string) {
	if name != "" && !strings.HasPrefix(name, "mso-") && !strings.HasPrefix(name, "-") {
		s.remove("style "+nameOf(name), "")
	}
}

// addText appends to the text of what was removed.
func (s *sending) addText(what, text string) {
	if s == nil {
		return
	}
	i, there := s.byWhat[what]
	if !there || len(s.removed[i].Text) >= maxExcerpt {
		return
	}
	if text = excerpt(text); text != "" {
		s.removed[i].Text = excerpt(strings.TrimSpace(s.removed[i].Text + " " + text))
	}
}

// linkTo records a link. says is the host that its text names.
func (s *sending) linkTo(u *url.URL, says string) {
	l := Link{URL: CutURL(u.String()), Host: u.Hostname()}
	if says != "" && l.Host != "" && plaintext.Site(says) != plaintext.Site(l.Host) {
		l.Says = says
	}
	if len(s.links) == maxFindings || s.seen[l] || u.Scheme == "" {
		return
	}
	if s.seen == nil {
		s.seen = map[Link]bool{}
	}
	s.seen[l] = true
	s.links = append(s.links, l)
}

// maxURL is how much of the address of a link is listed, in bytes.
const maxURL = 2000

// CutURL returns the beginning of a long URL with an ellipsis, or the whole URL.
func CutURL(s string) string {
	if len(s) <= maxURL {
		return s
	}
	return strings.ToValidUTF8(s[:maxURL], "") + "…"
}

// structural are the elements whose tags have no meaning of their own: a message without them
// is the same message.
var structural = setOf(`html head meta`)

// said are the attributes whose value a reader may see.
var said = []string{"value", "alt", "label", "srcdoc", "placeholder", "content", "href", "src", "data"}

// removeTag records the removed tag of an element, with what it shows.
func (s *sending) removeTag(t html.Token) {
	if s != nil && !structural[t.Data] {
		s.remove("<"+nameOf(t.Data)+">", saidBy(t))
	}
}

// saidBy returns what the attributes of an element tell a reader.
func saidBy(t html.Token) string {
	var texts []string
	for _, at := range t.Attr {
		if slices.Contains(said, at.Key) {
			texts = append(texts, at.Val[:min(len(at.Val), 8*maxExcerpt)])
		}
	}
	return strings.ToValidUTF8(strings.Join(texts, " "), "")
}

// nameOf returns the name of an element or attribute, shortened for display.
func nameOf(s string) string { return strings.ToValidUTF8(s[:min(len(s), 40)], "") }

// textEscaper escapes only what must be escaped in text: sanitizing again must not make the
// text longer.
var textEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
