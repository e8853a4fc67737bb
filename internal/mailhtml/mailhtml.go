// Package mailhtml makes the HTML of a mail, which anybody may have written, into
// HTML that only shows something: it holds no scripts, no forms, nothing that
// loads by itself and nothing that leads away without being followed.
//
// It is safe by what it writes and not by what it recognises. The tags are read
// one after the other and written anew from lists of elements, attributes and
// style properties; text is always escaped; no element is written whose content
// a browser reads by other rules (script, template, textarea, svg, math ...); and
// in a style sheet neither '<' nor a backslash is ever written. So it does not
// matter where a browser would have read the original differently. What is not on
// a list is left out, never repaired.
//
// Remote content is left out and counted, and on request its images are written
// with addresses that the caller gives. The result still belongs into a sandboxed
// frame with a content security policy: each is there for when the other fails.
package mailhtml

import (
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

const (
	// MaxInput is how much of a mail's HTML is looked at, in bytes.
	MaxInput = 2 << 20
	// maxDepth is how many elements may be open in each other. What is nested
	// deeper is shown without its elements.
	maxDepth = 200
	// maxStyle is how much there may be of style sheets, in bytes.
	maxStyle = 256 << 10
	// maxRemote is how many remote addresses are counted, and shown on request.
	maxRemote = 200
	// maxInline is how often images that lie in the mail are shown, and how many of
	// them are looked for.
	maxInline = 1000
)

// Options say where images come from. Neither function may return a URL that
// holds what the mail says unescaped.
type Options struct {
	// Inline returns the URL of the part with this Content-ID (RFC 2392), empty
	// when the mail has none.
	Inline func(contentID string) string
	// Remote returns the URL that shows a remote image, empty for none. nil leaves
	// out all remote content.
	Remote func(url string) string
	// Reveal shows the text that a reader does not see, marked, and leaves out media
	// queries. It is for HTML that Sanitize returned.
	Reveal bool
}

// Page is the HTML of a mail, made harmless.
type Page struct {
	// Body is what stands in the body element, and Style in one style element.
	Body, Style string
	// Blocked is how many remote images Options.Remote was not asked for.
	Blocked int
	// Refused is how much else the mail wanted to load, and never will: style
	// sheets, fonts, frames, videos.
	Refused int
	// Text is how many bytes of text it shows, and Images how many images.
	Text, Images int
	// Cut says that the mail was longer than MaxInput.
	Cut bool
}

// Clean makes the HTML of a mail harmless. Whatever it is given, it answers, in
// time that grows with the length alone.
func Clean(source string, o Options) Page {
	c := &cleaner{options: o, body: &strings.Builder{}, remote: map[string]bool{}, parts: map[string]string{}}
	if o.Reveal {
		c.hidden, _ = hiddenTexts(source[:min(len(source), MaxInput)])
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
			c.texts++
			c.text(string(z.Text()))
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			c.start(t)
		case html.EndTagToken:
			name, _ := z.TagName()
			c.close(string(name))
		case html.CommentToken:
			c.comment(string(z.Text()))
		case html.DoctypeToken:
		}
	}
}

// cleaner writes a page while the original is read.
type cleaner struct {
	options Options
	page    Page
	body    *strings.Builder
	sheet   strings.Builder
	open    []string // the elements that are open in what is written
	within  string   // the element whose content is left out, or is a style sheet
	nested  int      // how many of it are open
	remote  map[string]bool
	parts   map[string]string // addresses of the mail's own images, by Content-ID
	shown   int               // how often one of those was shown
	link    *link             // that is open
	texts   int               // how many texts there were
	hidden  map[int]string    // why the text of that number is hidden
	sending *sending          // nil of a mail that is only shown
}

func (c *cleaner) start(t html.Token) {
	if c.within != "" {
		if t.Data == c.within && t.Type == html.StartTagToken {
			c.nested++
		}
		c.countRemote(t)
		if c.within != "style" {
			c.sending.addText("<"+c.within+">", saidBy(t))
		}
		return
	}
	e, known := elements[t.Data]
	switch {
	case t.Data == "style" || leftOut[t.Data]:
		c.countRemote(t)
		if t.Data != "style" {
			c.sending.removeTag(t)
		}
		if t.Type == html.StartTagToken || rawText[t.Data] {
			c.within, c.nested = t.Data, 1
		}
		return
	case !known:
		c.countRemote(t)
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

// write writes a start tag with the attributes that it may have.
func (c *cleaner) write(t html.Token, e element) {
	name := e.name
	if name == "" {
		name = t.Data
	}
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

// close ends an element and those that are open in it. An end without a
// beginning is left out.
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
		if v == "td" || v == "th" { // a cell ends with its row or table only
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
		name := elements[last].name
		if name == "" {
			name = last
		}
		c.body.WriteString("</")
		c.body.WriteString(name)
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
	why := c.hidden[c.texts]
	switch {
	case c.sending != nil:
		_, _ = textEscaper.WriteString(c.body, s) // never fails
	case why != "":
		c.body.WriteString(`<span class="postroom-hidden" style="` + hiddenMark + `"><b style="` + hiddenLabel + `">hidden (` + why + `):</b> ` + html.EscapeString(s) + `</span>`)
	default:
		c.body.WriteString(html.EscapeString(s))
	}
}

// hiddenMark and hiddenLabel are the styles of text that is hidden in the mail, as
// leadsTo is that of where a link leads.
const (
	hiddenMark = "all:initial!important;position:relative!important;z-index:2147483646!important;color:#191c2b!important;" +
		"background:#fff3cd!important;outline:2px dashed #b3232f!important;font:13px/1.6 system-ui,sans-serif!important;overflow-wrap:anywhere!important"
	hiddenLabel = "all:initial!important;color:#b3232f!important;font:600 13px/1.6 system-ui,sans-serif!important"
)

// comment notes a comment that holds HTML, which some programs show.
func (c *cleaner) comment(s string) {
	if c.sending == nil {
		return
	}
	if conditional(s) {
		c.sending.remove("<!--[if]>", s)
	} else {
		c.sending.remove("<!-- -->", s)
	}
}

func (c *cleaner) end() Page {
	c.closeTo(0)
	c.page.Style = c.styleSheet(c.sheet.String())
	c.page.Body = c.body.String()
	return c.page
}
