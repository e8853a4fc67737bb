package compose

import (
	"strings"

	"golang.org/x/net/html"
)

// maxTracked is the maximum number of links to rewrite. Each one makes the
// message longer.
const maxTracked = 1000

// RewriteLinks replaces each link target in src with the result of link. It
// keeps a link unchanged if link returns "", and all other bytes. If pixel is
// not empty, it adds an image with that URL at the end of the body.
func RewriteLinks(src string, link func(target string) string, pixel string) string {
	z := html.NewTokenizer(strings.NewReader(src))
	var out strings.Builder
	out.Grow(len(src) + len(src)/4)
	end, changed := -1, 0
	for {
		kind := z.Next()
		raw := string(z.Raw()) // reading the tag below overwrites raw
		if kind == html.ErrorToken {
			out.WriteString(raw)
			break
		}
		switch name, more := z.TagName(); {
		case kind == html.EndTagToken && string(name) == "body":
			end = out.Len()
		case (kind == html.StartTagToken || kind == html.SelfClosingTagToken) && more && changed < maxTracked && (string(name) == "a" || string(name) == "area"):
			if tag, ok := relinked(z, string(name), kind, link); ok {
				raw = tag
				changed++
			}
		}
		out.WriteString(raw)
	}
	if pixel == "" {
		return out.String()
	}
	seen := `<img src="` + html.EscapeString(pixel) + `" width="1" height="1" alt="" style="border:0">`
	all := out.String()
	if end < 0 {
		return all + seen
	}
	return all[:end] + seen + all[end:]
}

// relinked rebuilds the tag that z is reading with a new target. ok is false if
// the tag stays unchanged.
func relinked(z *html.Tokenizer, name string, kind html.TokenType, link func(string) string) (tag string, ok bool) {
	t := html.Token{Type: kind, Data: name}
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		a := html.Attribute{Key: string(key), Val: string(value)}
		if a.Key == "href" { // the tokenizer returns the first of two, as browsers do
			if a.Val = link(strings.TrimSpace(a.Val)); a.Val == "" {
				return "", false
			}
			ok = true
		}
		t.Attr = append(t.Attr, a)
	}
	return t.String(), ok
}
