package htmltext

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/postroom/postroom/internal/cpubudget"
	"github.com/postroom/postroom/internal/mail/css"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// A Page is the visible content of an HTML message.
type Page struct {
	Text  []byte // lines; the cells of a table row are separated by tabs
	Links []Link
	// Hidden are the texts that a person does not see, in their order, at most
	// MaxHidden bytes of them.
	Hidden []Hidden
	// Invisible are the invisible characters of the visible text.
	Invisible plaintext.Invisible
	// TooComplex means that the style sheets take too much work, so that more may be
	// hidden.
	TooComplex bool

	targets, marked []byte // Text with the additions of WithTargets and of WithMarks
}

// Link is a link with a target.
type Link struct {
	Href       string
	Start, End int    // position of the link text in Page.Text
	Button     bool   // it looks like a button: it has a background, or a class that says so
	boxed      bool   // it has a box that is seen without its text
	label      string // alternative text of its image, or its title
}

// Mode selects the texts that Read writes. Page.Text is the first of them.
type Mode int

const (
	OnlyVisible Mode = 1 << iota // with the codes in images and input fields
	WithTargets                  // the target of each link after its text
	WithMarks                    // marker lines where an email client put a quotation or signature
)

// LinkText returns the text of the link, or its label.
func (p *Page) LinkText(l *Link) string {
	if s := strings.TrimSpace(string(p.Text[l.Start:l.End])); s != "" {
		return s
	}
	return l.label
}

// Read reads HTML in one pass without building a tree, so deep nesting costs no
// extra time. It keeps at most maxLinks links and stops when the budget runs
// out. Text and links that a person does not see are left out.
func Read(src string, maxLinks int, mode Mode, budget *cpubudget.Budget) *Page {
	sheet, ok := styleSheet(src)
	finder := css.NewFinder(sheet, false)
	finder.Quirks = true
	r := pageReader{z: html.NewTokenizer(strings.NewReader(src)), maxLinks: maxLinks, mode: mode, hiddenAt: -1, linkAt: -1, finder: finder}
	for _, m := range []Mode{OnlyVisible, WithTargets, WithMarks} {
		if m&mode != 0 {
			r.writers = append(r.writers, &pageWriter{mode: m, buf: make([]byte, 0, len(src)/4+64)})
		}
	}
	r.w = r.writers[0]
	r.read(budget)
	r.page.TooComplex = finder.Complex() || !ok
	return &r.page
}

func (r *pageReader) read(budget *cpubudget.Budget) {
	defer r.end()
	for !budget.Spent() {
		switch r.z.Next() {
		case html.ErrorToken:
			// io.EOF, or a token that exceeds the tokenizer's limit.
			if errors.Is(r.z.Err(), io.EOF) || len(r.z.Raw()) == 0 {
				return
			}
		case html.TextToken:
			r.text()
		case html.StartTagToken, html.SelfClosingTagToken:
			r.open()
		case html.EndTagToken:
			name, _ := r.z.TagName()
			r.close(atom.Lookup(name))
		case html.CommentToken:
			r.hide(withoutTags(r.z.Text()), "comment")
		case html.DoctypeToken:
			r.finder.Quirks = false
		}
	}
}

// text reads a text.
func (r *pageReader) text() {
	why := ""
	switch {
	case r.hiddenAt >= 0 && isUnseen(r.stack[len(r.stack)-1]):
		why = "<" + r.stack[len(r.stack)-1].String() + ">"
	case r.hiddenAt >= 0 && isUnseen(r.stack[r.hiddenAt]):
		why = "<" + r.stack[r.hiddenAt].String() + ">"
	default:
		why = r.finder.WhyHidden()
	}
	text := r.z.Text()
	if why != "" || r.hiddenAt >= 0 {
		if why != "<style>" {
			r.hide(text, why)
		}
		if r.linkHides = true; r.linkAt >= 0 && why != "" {
			if l := &r.page.Links[r.linkAt]; l.boxed && l.label == "" {
				l.label = strings.TrimSpace(string(text[:min(len(text), maxAlt)]))
			}
		}
		return
	}
	if slices.ContainsFunc(text, func(c byte) bool { return c >= utf8.RuneSelf }) {
		r.page.Invisible.Add(string(text))
	}
	for _, w := range r.writers {
		w.text(text, r.pre > 0)
	}
}

// end finishes the page.
func (r *pageReader) end() {
	r.endLink()
	r.page.Text = r.w.buf
	for _, w := range r.writers {
		switch w.mode {
		case WithTargets:
			r.page.targets = w.buf
		case WithMarks:
			r.page.marked = w.buf
		}
	}
}

// pageReader is the state of Read.
type pageReader struct {
	z        *html.Tokenizer
	writers  []*pageWriter // of the texts of the page
	w        *pageWriter   // the first of them
	page     Page
	maxLinks int
	mode     Mode

	base     *url.URL    // of relative links; nil without one
	stack    []atom.Atom // open elements
	hiddenAt int         // length of stack below the hidden element, or -1
	linkAt   int         // index of the open link in page.links, or -1
	pre      int         // open <pre>

	finder    *css.Finder      // of hidden text
	attrs     []html.Attribute // of the current tag, for the finder
	linkHides bool             // the open link contains hidden text
	linkShows bool             // it contains an image
	hides     int              // bytes of hidden text that are kept
}

// attributes are the relevant attributes of one tag.
type attributes struct {
	href, label    string
	value          string // of an input element
	quoted, styled bool
	boxed          bool   // a link with space or a border around its text
	secret         bool   // an input element that is not shown
	button         bool   // the element looks like a button
	mark           string // marker of an email client's element, or ""
}

func (r *pageReader) open() {
	name, hasAttr := r.z.TagName()
	tag := atom.Lookup(name)
	var attr attributes
	r.attrs = r.attrs[:0]
	if hasAttr {
		attr = r.attributes(tag)
	}
	if tag == atom.Base {
		r.setBase(attr.href)
	}
	r.imply(tag)
	below := len(r.stack)
	void := isVoid(tag)
	if !void {
		r.stack = append(r.stack, tag)
	}
	if r.hiddenAt >= 0 {
		return
	}
	hides := false
	switch {
	case !void:
		r.finder.Start(atom.String(name), r.attrs)
		// What hides the body comes with its own tag.
		hides = isUnseen(tag) || tag != atom.Html && tag != atom.Head && r.finder.HidesAll() != ""
	case attr.styled:
		hides = r.finder.StartVoid(atom.String(name), r.attrs) != ""
	}
	if hides {
		if !void {
			r.hiddenAt = below
		}
		return
	}
	for _, w := range r.writers {
		if w.breakFor(tag); w.mode == WithMarks && attr.mark != "" && len(w.quotes) == 0 {
			w.mark(attr.mark)
		}
	}
	r.begin(tag, &attr, below)
}

// setBase sets the address that relative links refer to. The first https address
// counts.
func (r *pageReader) setBase(href string) {
	if r.base != nil || len(href) > plaintext.MaxURL {
		return
	}
	if base, err := url.Parse(plaintext.CleanHref(href)); err == nil && base.Scheme == "https" && base.Host != "" {
		r.base = base
	}
}

// absolute returns the target of a link that may be relative. A target within the
// page stays as it is.
func (r *pageReader) absolute(href string) string {
	if r.base == nil || len(href) > plaintext.MaxURL || href[0] == '#' || plaintext.SchemeLen(href) > 0 {
		return href
	}
	ref, err := url.Parse(plaintext.CleanHref(href))
	if err != nil || ref.IsAbs() {
		return href
	}
	return r.base.ResolveReference(ref).String()
}

// begin handles the start of a visible element. below is the number of open
// elements around it.
func (r *pageReader) begin(tag atom.Atom, attr *attributes, below int) {
	switch tag {
	case atom.A, atom.Area:
		r.endLink()
		if attr.href != "" && len(r.page.Links) < r.maxLinks {
			r.linkAt, r.linkHides, r.linkShows = len(r.page.Links), false, false
			r.page.Links = append(r.page.Links, Link{Href: r.absolute(attr.href), Start: len(r.w.buf), Button: attr.button, boxed: attr.boxed, label: attr.label})
		}
	case atom.Img:
		r.linkShows = true
		if r.linkAt >= 0 && r.page.Links[r.linkAt].label == "" {
			r.page.Links[r.linkAt].label = attr.label
		}
		if r.w.mode == OnlyVisible && saysCode(attr.label) {
			r.w.text([]byte(attr.label), false)
		}
	case atom.Input:
		if r.w.mode == OnlyVisible && !attr.secret && saysCode(attr.value) {
			r.w.text([]byte(attr.value), false)
		}
	case atom.Pre:
		r.pre++
	case atom.Blockquote:
		for _, w := range r.writers {
			w.openQuote(attr.quoted, below)
		}
	}
}

// attributes returns the relevant attributes of the current tag.
func (r *pageReader) attributes(tag atom.Atom) (a attributes) {
	for more := true; more; {
		var key, val []byte
		key, val, more = r.z.TagAttr()
		if r.hiddenAt < 0 && r.finder.Wants(key) {
			r.attrs = append(r.attrs, html.Attribute{Key: atom.String(key), Val: string(val)})
		}
		if tag == atom.A && string(key) == "class" {
			class := bytes.ToLower(val)
			a.button = a.button || bytes.Contains(class, []byte("btn")) || bytes.Contains(class, []byte("button"))
		}
		switch string(key) {
		case "href":
			a.href = strings.TrimSpace(string(val))
		case "style":
			a.styled = true
			if tag == atom.A {
				boxed, filled := boxOf(val)
				a.boxed, a.button = boxed, a.button || filled
			}
		case "hidden", "popover":
			a.styled = true
		case "alt", "title", "aria-label":
			if tag == atom.Img || tag == atom.A {
				a.label = strings.TrimSpace(string(val))
			}
		case "value":
			a.value = strings.TrimSpace(string(val))
		case "type", "class", "id", "name":
			a.styled = a.styled || string(key) == "class" || string(key) == "id"
			a.secret = a.secret || string(key) == "type" && bytes.EqualFold(val, []byte("hidden"))
			if tag == atom.Blockquote {
				val = bytes.ToLower(val)
				a.quoted = a.quoted || bytes.Contains(val, []byte("cite")) || bytes.Contains(val, []byte("quote"))
			} else if r.mode&WithMarks != 0 && a.mark == "" {
				a.mark = programMark(val)
			}
		}
	}
	return a
}

// maxAlt is the maximum length, in bytes, of an alternative text that may
// contain a code.
const maxAlt = 120

// saysCode reports whether the alternative text of an image or the value of an
// input may contain a code, or one digit of it.
func saysCode(text string) bool { return len(text) <= maxAlt && plaintext.HasDigit(text) }

// maxUnclosed is the number of open elements that an end tag is compared with.
const maxUnclosed = 64

func (r *pageReader) close(tag atom.Atom) {
	if tag == atom.P || tag == atom.Br {
		r.breakVisible(tag)
	}
	for i := len(r.stack) - 1; i >= max(0, len(r.stack)-maxUnclosed); i-- {
		if r.stack[i] == tag {
			r.breakVisible(tag)
			r.cut(i)
			return
		}
	}
}

func (r *pageReader) breakVisible(tag atom.Atom) {
	if r.hiddenAt < 0 {
		for _, w := range r.writers {
			w.breakFor(tag)
		}
	}
}

// cut closes all elements above the first n.
func (r *pageReader) cut(n int) {
	for _, tag := range r.stack[n:] {
		switch tag {
		case atom.A:
			r.endLink()
		case atom.Pre:
			r.pre = max(0, r.pre-1)
		}
	}
	r.stack = r.stack[:n]
	if r.hiddenAt >= n {
		r.hiddenAt = -1
	}
	for r.finder.Open() > n {
		r.finder.End()
	}
	for _, w := range r.writers {
		w.closeQuotes(n)
	}
}

// imply closes the elements that the start of tag closes implicitly, as HTML
// defines. It checks only the innermost open element each time.
func (r *pageReader) imply(tag atom.Atom) {
	for len(r.stack) > 0 {
		top := r.stack[len(r.stack)-1]
		closes := false
		switch top {
		case atom.P:
			closes = isBlock(tag)
		case atom.Li:
			closes = tag == atom.Li
		case atom.Td, atom.Th:
			closes = tag == atom.Td || tag == atom.Th || tag == atom.Tr || tag == atom.Tbody
		case atom.Tr:
			closes = tag == atom.Tr || tag == atom.Tbody
		}
		if !closes {
			return
		}
		r.cut(len(r.stack) - 1)
	}
}

func (r *pageReader) endLink() {
	if r.linkAt < 0 {
		return
	}
	l := &r.page.Links[r.linkAt]
	r.linkAt = -1
	if l.End = len(r.w.buf); l.Start > l.End {
		l.Start = l.End
	}
	if r.linkHides && !r.linkShows && !l.boxed && len(bytes.TrimSpace(r.w.buf[l.Start:l.End])) == 0 {
		r.page.Links = r.page.Links[:len(r.page.Links)-1] // no one sees it
		return
	}
	for _, w := range r.writers {
		if w.mode == WithTargets && plaintext.IsWebLink(l.Href) && !strings.Contains(l.Href, strings.TrimSpace(string(r.w.buf[l.Start:l.End]))) {
			w.text([]byte(" <"+l.Href+">"), false)
		}
	}
}
