package compose

import (
	"strings"

	"golang.org/x/net/html"
)

// maxTracked is how many links of a message are changed; each makes it longer.
const maxTracked = 1000

// RewriteLinks returns HTML in which the targets of links are replaced by what
// link returns for them; where it returns "", and in whatever is not a plain link,
// everything is kept, byte by byte. A picture of the address pixel, if there
// is one, is put at the end of what is seen.
func RewriteLinks(src string, link func(target string) string, pixel string) string {
	z := html.NewTokenizer(strings.NewReader(src))
	var out strings.Builder
	out.Grow(len(src) + len(src)/4)
	end, changed := -1, 0
	for {
		kind := z.Next()
		raw := string(z.Raw()) // what is read of the tag below changes it
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

// relinked writes the tag that the tokenizer has read the name of anew, with
// another target. ok is false when the tag is kept.
func relinked(z *html.Tokenizer, name string, kind html.TokenType, link func(string) string) (tag string, ok bool) {
	t := html.Token{Type: kind, Data: name}
	for more := true; more; {
		var key, value []byte
		key, value, more = z.TagAttr()
		a := html.Attribute{Key: string(key), Val: string(value)}
		if a.Key == "href" { // of two, the tokenizer gives the first, as browsers do
			if a.Val = link(strings.TrimSpace(a.Val)); a.Val == "" {
				return "", false
			}
			ok = true
		}
		t.Attr = append(t.Attr, a)
	}
	return t.String(), ok
}
