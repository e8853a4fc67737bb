package mailhtml

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/mail/plaintext"
)

// maxSaid is how much of a link's text is compared with its target, in bytes.
const maxSaid = 300

// leadsTo is the style of the mark that shows a link's target. It is an attribute of the
// element, where it overrides any style sheet (CSS Cascade Level 4, section 6.1), and is on
// top of everything else, because the rest of a message has no position.
const leadsTo = "all:initial!important;position:relative!important;z-index:2147483647!important;" +
	"color:#b3232f!important;background:#fff!important;font:600 13px/1.5 system-ui,sans-serif!important"

// link is an open link and its text so far.
type link struct {
	to    *url.URL // nil if the link is disabled
	host  string   // compared with the text
	text  strings.Builder
	outer *strings.Builder // the output; the content is buffered until the link ends
}

func (l *link) said(s string) {
	if l.text.Len() < maxSaid {
		l.text.WriteString(s[:min(len(s), maxSaid)])
	}
}

// holdLink buffers what is written until the link ends.
func (c *cleaner) holdLink() {
	c.link.outer, c.body = c.body, &strings.Builder{}
}

// openLink writes the allowed target of a link, also as its title, whatever its text says.
func (c *cleaner) openLink(t html.Token) {
	c.link = &link{}
	href, given := attr(t, "href")
	u := linkURL(href)
	if u == nil {
		if given {
			c.sending.remove("address of a link", href)
		}
		return
	}
	c.link.to = u
	c.set("href", u.String())
	if u.Scheme == "" || c.sending != nil { // a place in this message
		return
	}
	c.link.host = u.Hostname()
	c.set("title", u.String())
	c.set("target", "_blank")
	c.set("rel", "noopener noreferrer nofollow")
}

// closeLink ends the open link: links cannot be nested.
func (c *cleaner) closeLink() {
	for i, v := range slices.Backward(c.open) {
		if v == "a" {
			c.closeTo(i)
			return
		}
	}
}

// endLink writes the content of the open link. If the text names another site than the
// target, it writes only the text, after a mark that shows the target: no style or element in
// the link can then hide the mark or separate the two.
func (c *cleaner) endLink() {
	l := c.link
	if l == nil {
		return
	}
	content := c.body.String()
	c.link, c.body = nil, l.outer
	text := strings.TrimSpace(l.text.String())
	if c.sending != nil && l.to != nil {
		c.sending.linkTo(l.to, plaintext.HostIn(text))
	}
	if said := plaintext.HostIn(text); l.host == "" || said == "" || plaintext.Site(said) == plaintext.Site(l.host) {
		c.body.WriteString(content)
		return
	}
	c.body.WriteString(`<span class="postroom-leads-to" style="` + leadsTo + `">(leads to ` + html.EscapeString(l.host) + `) </span>` + html.EscapeString(text))
}

// linkURL returns the allowed target of a link, or nil.
func linkURL(raw string) *url.URL {
	raw = webTrim(raw)
	if strings.HasPrefix(raw, "#") && len(raw) > 1 {
		return &url.URL{Fragment: raw[1:]}
	}
	if u := webURL(raw); u != nil {
		return u
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host != "" || u.Opaque == "" || u.Scheme != "mailto" && u.Scheme != "tel" {
		return nil
	}
	return u
}

// webURL returns a web address, or nil if programs could parse raw differently.
func webURL(raw string) *url.URL {
	raw = webTrim(raw)
	if strings.HasPrefix(raw, "//") {
		raw = "https:" + raw
	}
	if strings.ContainsRune(raw, '\\') {
		return nil
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" || u.User != nil || u.Hostname() == "" {
		return nil
	}
	host := plaintext.ASCIIHost(u.Hostname())
	if host == "" {
		return nil
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" {
		host += ":" + port
	}
	u.Host = host
	return u
}

// webTrim removes what browsers remove from addresses before they parse them (URL Living
// Standard, 4.4).
func webTrim(raw string) string {
	raw = strings.TrimFunc(raw, func(r rune) bool { return r <= ' ' })
	return strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, raw)
}

func attr(t html.Token, key string) (string, bool) {
	for _, at := range t.Attr {
		if at.Key == key && at.Namespace == "" {
			return at.Val, true
		}
	}
	return "", false
}
