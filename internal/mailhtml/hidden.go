package mailhtml

import (
	"strings"
	"unicode"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/mail/css"
)

// Hidden is a piece of text that readers of a message, or some of them, do not see.
type Hidden struct {
	Text string
	Why  string // the reason
}

// newFinder returns a finder for a cleaned message.
func newFinder(source string) *finder {
	var sheet strings.Builder
	each(source, func(z *html.Tokenizer, inStyle bool, _ html.Token) {
		if inStyle {
			sheet.Write(z.Text())
		}
	})
	return &finder{css.NewFinder(sheet.String(), true)}
}

// findHidden returns the hidden texts of a cleaned message in their order. It returns false
// if its styles take too much work.
func findHidden(source string) (out []Hidden, ok bool) {
	f := newFinder(source)
	each(source, func(_ *html.Tokenizer, inStyle bool, t html.Token) {
		switch {
		case t.Type == html.StartTagToken, t.Type == html.SelfClosingTagToken:
			f.start(t)
		case t.Type == html.EndTagToken:
			f.EndTag(t.Data)
		case t.Type == html.TextToken && !inStyle && len(out) <= maxFindings:
			why := f.whyHidden(t.Data)
			if why == "" {
				return
			}
			text := excerpt(t.Data)
			if i := len(out) - 1; i >= 0 && out[i].Why == why && len(out[i].Text)+len(text) < maxExcerpt {
				out[i].Text += " " + text
				return
			}
			out = append(out, Hidden{text, why})
		}
	})
	return out[:min(len(out), maxFindings)], !f.Complex()
}

// each calls do for each token of a message, except for the text of a style sheet.
func each(source string, do func(z *html.Tokenizer, inStyle bool, t html.Token)) {
	z := html.NewTokenizer(strings.NewReader(source))
	inStyle := false
	for {
		typ := z.Next()
		if typ == html.ErrorToken {
			return
		}
		if typ == html.TextToken && inStyle {
			do(z, true, html.Token{Type: typ})
			continue
		}
		t := z.Token()
		inStyle = typ == html.StartTagToken && t.Data == "style"
		do(z, false, t)
	}
}

// visible reports whether a text has a visible character.
func visible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Mn, r)
	}) >= 0
}

// finder follows the elements of a cleaned message.
type finder struct{ *css.Finder }

// whyHidden returns why a text in the innermost open element is hidden, or an empty string.
func (f *finder) whyHidden(text string) string {
	if why := f.WhyHidden(); why != "" && visible(text) {
		return why
	}
	return ""
}

func (f *finder) start(t html.Token) {
	e, known := elements[t.Data]
	if !known || e.void || f.Open() > maxDepth {
		return
	}
	if t.Data == "a" {
		f.EndTag("a") // the open link ends, as in the cleaner
	}
	f.Start(t.Data, t.Attr)
}
