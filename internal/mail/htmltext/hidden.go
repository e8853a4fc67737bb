package htmltext

import (
	"bytes"
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/internal/mail/css"
	"github.com/postroom/postroom/internal/mail/plaintext"
)

// Hidden is a text that a person does not see.
type Hidden struct {
	Text []byte
	// Why is the reason: a word of the package css, "comment", or the element, as in
	// "<title>".
	Why string
	// First means that no visible text comes before it.
	First bool
}

// MaxHidden is how much hidden text is kept, in bytes.
const MaxHidden = 64 << 10

// hide notes a hidden text.
func (r *pageReader) hide(text []byte, why string) {
	text = bytes.TrimSpace(text)
	if r.hides >= MaxHidden || !plaintext.HasWord(text) {
		return
	}
	text = text[:min(len(text), MaxHidden-r.hides)]
	r.hides += len(text)
	first := len(r.w.buf) == 0
	hidden := r.page.Hidden
	if i := len(hidden) - 1; i >= 0 && hidden[i].Why == why && hidden[i].First == first {
		hidden[i].Text = append(append(hidden[i].Text, ' '), text...)
		return
	}
	r.page.Hidden = append(hidden, Hidden{bytes.Clone(text), why, first})
}

// withoutTags returns the text of a comment without the tags in it.
func withoutTags(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for len(s) > 0 {
		open := bytes.IndexByte(s, '<')
		if open < 0 {
			open = len(s)
		}
		out = append(append(out, s[:open]...), ' ')
		s = s[open:]
		end := bytes.IndexByte(s, '>')
		if end < 0 {
			break
		}
		s = s[end+1:]
	}
	return out
}

// maxSheet is how much of the style sheets of a page is read, in bytes.
const maxSheet = 256 << 10

// styleSheet returns the style sheets of a page that hold on a screen. It returns false if
// they are too long.
func styleSheet(src string) (string, bool) {
	last := lastStyle(src)
	if last < 0 {
		return "", true
	}
	var sheet strings.Builder
	z := html.NewTokenizer(strings.NewReader(src[:last]))
	within := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			return strings.NewReplacer("<!--", " ", "-->", " ").Replace(sheet.String()), true
		case html.StartTagToken:
			within = holds(z)
		case html.TextToken:
			if !within {
				continue
			}
			if text := z.Text(); sheet.Len()+len(text) < maxSheet {
				sheet.Write(text)
				sheet.WriteByte('\n')
			} else {
				return sheet.String(), false
			}
		}
	}
}

// holds reports whether the current tag begins a style sheet for a screen.
func holds(z *html.Tokenizer) bool {
	name, more := z.TagName()
	if string(name) != "style" {
		return false
	}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		switch {
		case string(key) == "media" && !css.MediaHolds(string(value)):
			return false
		case string(key) == "type" && len(value) > 0 && !bytes.EqualFold(bytes.TrimSpace(value), []byte("text/css")):
			return false
		}
	}
	return true
}

// lastStyle returns where the last style sheet of a page ends, or -1.
func lastStyle(src string) int {
	const end = "</style"
	for at := len(src); ; {
		at = strings.LastIndex(src[:at], "</")
		if at < 0 {
			return -1
		}
		if len(src)-at >= len(end) && strings.EqualFold(src[at:at+len(end)], end) {
			return at
		}
	}
}
