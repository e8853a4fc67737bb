package mailosaur

import (
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/dropin/vendorapi"
)

// content returns a body with the codes and links in it.
func content(m *gen.Message, body string, links []link) object {
	codes := []object{}
	for _, code := range m.Extracted.Value.Codes {
		if strings.Contains(body, code) {
			codes = append(codes, object{"value": code})
		}
	}
	return object{"body": body, "codes": codes, "links": vendorapi.Mapped(links, func(l link) object {
		return object{"href": l.target, "text": strings.TrimSpace(l.text)}
	})}
}

// link is a link or an image of a message.
type link struct{ target, text string }

// linksOf returns the links and images of an HTML body in their order.
func linksOf(body string) (links, images []link) {
	z, open := html.NewTokenizer(strings.NewReader(body)), false
	var text strings.Builder // of the open link
	for {
		switch z.Next() {
		case html.ErrorToken:
			return links, images
		case html.TextToken:
			if open {
				text.Write(z.Text())
				links[len(links)-1].text = text.String()
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == "a" {
				open = false
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			at := func(key string) string {
				if i := slices.IndexFunc(t.Attr, func(a html.Attribute) bool { return a.Key == key }); i >= 0 {
					return t.Attr[i].Val
				}
				return ""
			}
			switch {
			case t.Data == "a" && at("href") != "":
				text.Reset()
				links, open = append(links, link{at("href"), ""}), true
			case t.Data == "img":
				images = append(images, link{at("src"), at("alt")})
			}
		}
	}
}

// textLinks returns the links of a plain text in their order.
func textLinks(text string) (links []link) {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n<>\"()[]", r) }) {
		if strings.HasPrefix(word, "https://") || strings.HasPrefix(word, "http://") {
			word = strings.TrimRight(word, ".,;:!?")
			links = append(links, link{word, word})
		}
	}
	return links
}
