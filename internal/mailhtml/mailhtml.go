// Package mailhtml converts the HTML of a message, which anyone may have written, into HTML
// that only shows something: without scripts, without forms, without anything that loads by
// itself, and with links that only lead away when the reader follows them.
//
// Its safety depends on what it writes and not on what it recognises. It reads the tags one by
// one and writes new ones from lists of elements, attributes and style properties. It always
// escapes text, never writes an element whose content a browser parses by other rules (script,
// template, textarea, svg, math ...), and never writes '<' or a backslash into a style sheet.
// So it does not matter where a browser would have parsed the original differently. Content
// that is not on a list is removed, never repaired.
//
// Remote content is removed and counted. On request its images are written with addresses that
// the caller provides. The result must still be shown in a sandboxed frame with a content
// security policy: each protects if the other fails.
package mailhtml

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

const (
	// MaxInput is how much of a message's HTML is read, in bytes.
	MaxInput = 2 << 20
	// maxDepth is how deep elements may be nested. What is nested
	// deeper is shown without its elements.
	maxDepth = 200
	// maxStyle is the maximum size of all style sheets, in bytes.
	maxStyle = 256 << 10
	// maxRemote is how many remote addresses are counted, and shown on request.
	maxRemote = 200
	// maxInline is how often images of the message itself are shown, and how many of
	// them are requested.
	maxInline = 1000
)

// Options say where images come from. Neither function may return a URL that contains
// unescaped text of the message.
type Options struct {
	// Inline returns the URL of the part with this Content-ID (RFC 2392), or an empty
	// string if there is no such part.
	Inline func(contentID string) string
	// Remote returns the URL that shows a remote image, or an empty string. nil removes
	// all remote content.
	Remote func(url string) string
	// Reveal shows hidden text with a mark, and removes media
	// queries. It is for HTML that Sanitize returned.
	Reveal bool
}

// Page is the harmless HTML of a message.
type Page struct {
	// Body is the content of the body element, and Style of one style element.
	Body, Style string
	// Blocked is how many remote images are not shown because Options.Remote is nil.
	Blocked int
	// Text is how many bytes of text it shows, and Images how many images.
	Text, Images int
	// Cut reports that the message was longer than MaxInput.
	Cut bool
}

// Clean makes the HTML of a message harmless. It accepts any input, and its time grows only
// with the length.
func Clean(source string, o Options) Page {
	c := &cleaner{options: o, body: &strings.Builder{}, remote: map[string]bool{}, parts: map[string]string{}}
	if o.Reveal {
		c.hidden = newFinder(source[:min(len(source), MaxInput)])
	}
	return c.clean(source)
}

func (c *cleaner) clean(source string) Page {
	if len(source) > MaxInput {
		source, c.page.Cut = source[:MaxInput], true
	}
	z := html.NewTokenizer(strings.NewReader(strings.ToValidUTF8(source, "\uFFFD")))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); !errors.Is(err, io.EOF) {
				c.page.Cut = true
			}
			return c.end()
		case html.TextToken:
			c.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			c.start(t)
			if c.hidden != nil {
				c.hidden.start(t)
			}
		case html.EndTagToken:
			tag, _ := z.TagName()
			name := string(tag)
			c.close(name)
			if c.hidden != nil {
				c.hidden.EndTag(name)
			}
		case html.CommentToken:
			c.comment(string(z.Text()))
		case html.DoctypeToken:
		}
	}
}

// cleaner writes a page while it reads the original.
type cleaner struct {
	options Options
	page    Page
	body    *strings.Builder
	sheet   strings.Builder
	open    []string // the open elements of the output
	within  string   // the element whose content is removed or is a style sheet
	nested  int      // how many of it are open
	remote  map[string]bool
	parts   map[string]string // addresses of the message's own images, by Content-ID
	shown   int               // how often one of those was shown
	link    *link             // the open link
	hidden  *finder           // nil unless hidden text is revealed
	sending *sending          // nil for a message that is only shown
}

func (c *cleaner) start(t html.Token) {
	if c.within != "" {
		if t.Data == c.within && t.Type == html.StartTagToken {
			c.nested++
		}
		if c.within != "style" {
			c.sending.addText("<"+c.within+">", saidBy(t))
		}
		return
	}
	e, known := elements[t.Data]
	switch {
	case t.Data == "style" || leftOut[t.Data]:
		if t.Data != "style" {
			c.sending.removeTag(t)
		}
		if t.Type == html.StartTagToken || rawText[t.Data] {
			c.within, c.nested = t.Data, 1
		}
		return
	case !known:
		c.sending.removeTag(t)
		return
	case t.Data == "a":
		c.closeLink()
	}
	if !e.void && len(c.open) >= maxDepth {
		c.sending.remove("elements in more than 200 others", "")
		return
	}
	c.write(t, e)
}

// write writes a start tag with its allowed attributes.
func (c *cleaner) write(t html.Token, e element) {
	name := cmp.Or(e.name, t.Data)
	c.body.WriteByte('<')
	c.body.WriteString(name)
	if name == "img" {
		c.image(t)
	}
	seen := map[string]bool{}
	for _, at := range t.Attr {
		if seen[at.Key] || at.Namespace != "" {
			continue
		}
		seen[at.Key] = true
		c.attribute(t.Data, at)
	}
	if t.Data == "a" {
		c.openLink(t)
	}
	c.body.WriteByte('>')
	if t.Data == "a" {
		c.holdLink()
	}
	if !e.void {
		c.open = append(c.open, t.Data)
	}
}

func (c *cleaner) set(name, value string) {
	c.body.WriteByte(' ')
	c.body.WriteString(name)
	c.body.WriteString(`="`)
	c.body.WriteString(html.EscapeString(value))
	c.body.WriteByte('"')
}

// close ends an element and the open elements inside it. It ignores an end tag without a start
// tag.
func (c *cleaner) close(name string) {
	if c.within != "" {
		if name == c.within {
			if c.nested--; c.nested == 0 {
				c.within = ""
			}
		}
		return
	}
	for i, v := range slices.Backward(c.open) {
		if v == name {
			c.closeTo(i)
			return
		}
		if v == "td" || v == "th" { // a cell ends only with its row or table
			if name != "tr" && name != "table" && name != "tbody" && name != "thead" && name != "tfoot" {
				return
			}
		}
	}
}

// closeTo ends elements until n are open.
func (c *cleaner) closeTo(n int) {
	for len(c.open) > n {
		last := c.open[len(c.open)-1]
		c.open = c.open[:len(c.open)-1]
		if last == "a" {
			c.endLink()
		}
		c.body.WriteString("</")
		c.body.WriteString(cmp.Or(elements[last].name, last))
		c.body.WriteByte('>')
	}
}

func (c *cleaner) text(s string) {
	switch c.within {
	case "":
	case "style":
		if c.sheet.Len()+len(s) <= maxStyle {
			c.sheet.WriteString(s)
			c.sheet.WriteByte('\n')
		} else {
			c.sending.remove("<style>, which is too long", "")
		}
		return
	default:
		c.sending.addText("<"+c.within+">", s)
		return
	}
	c.page.Text += len(strings.TrimSpace(s))
	if c.link != nil {
		c.link.said(s)
	}
	why := ""
	if c.hidden != nil {
		why = c.hidden.whyHidden(s)
	}
	switch {
	case c.sending != nil:
		_, _ = textEscaper.WriteString(c.body, s) // a builder never fails
	case why != "":
		c.body.WriteString(`<span class="postroom-hidden" style="` + hiddenMark + `"><b style="` + hiddenLabel + `">hidden (` + why + `):</b> ` + html.EscapeString(s) + `</span>`)
	default:
		c.body.WriteString(html.EscapeString(s))
	}
}

// hiddenMark and hiddenLabel are the styles of revealed text, as leadsTo is the style of the
// mark of a link.
const (
	hiddenMark = "all:initial!important;position:relative!important;z-index:2147483646!important;color:#191c2b!important;" +
		"background:#fff3cd!important;outline:2px dashed #b3232f!important;font:13px/1.6 system-ui,sans-serif!important;overflow-wrap:anywhere!important"
	hiddenLabel = "all:initial!important;color:#b3232f!important;font:600 13px/1.6 system-ui,sans-serif!important"
)

// comment records a comment that contains HTML, which some programs show.
func (c *cleaner) comment(s string) {
	what := "<!-- -->"
	if strings.HasPrefix(strings.ToLower(strings.TrimLeft(s, "- \t\r\n")), "[if") {
		what = "<!--[if]>"
	}
	c.sending.remove(what, s)
}

func (c *cleaner) end() Page {
	c.closeTo(0)
	c.page.Style = c.styleSheet(c.sheet.String())
	c.page.Body = c.body.String()
	return c.page
}
