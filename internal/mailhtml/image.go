package mailhtml

import (
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// dataImage matches an image inside its own address. It allows only bitmaps, because an SVG
// is a document.
var dataImage = regexp.MustCompile(`^data:image/(png|gif|jpeg|jpg|webp|bmp);base64,[A-Za-z0-9+/=]+$`)

// maxDataImage is the longest address of an image that contains the image.
const maxDataImage = 512 << 10

// image writes the source of an image. A removed image keeps its place and its text.
func (c *cleaner) image(t html.Token) {
	c.page.Images++
	src, _ := attr(t, "src")
	if strings.TrimSpace(src) == "" {
		srcset, _ := attr(t, "srcset")
		src, _, _ = strings.Cut(strings.TrimSpace(srcset), " ")
		src = strings.TrimSuffix(src, ",")
	}
	switch u := c.imageURL(src); {
	case u != "":
		c.set("src", u)
	case c.sending == nil:
		c.set("data-left-out", "")
	case src != "":
		c.sending.remove("address of an image", src)
	}
}

// imageURL returns the address under which an image is shown, or an empty string.
func (c *cleaner) imageURL(raw string) string {
	raw = webTrim(raw)
	if len(raw) >= 4 && strings.EqualFold(raw[:4], "cid:") {
		return c.inline(raw[4:])
	}
	if len(raw) <= maxDataImage && dataImage.MatchString(strings.ReplaceAll(raw, " ", "")) {
		return strings.ReplaceAll(raw, " ", "")
	}
	u := webURL(raw)
	if u == nil {
		return ""
	}
	address := u.String()
	if !c.remote[address] {
		if len(c.remote) >= maxRemote {
			return ""
		}
		c.remote[address] = true
		if c.options.Remote == nil {
			c.page.Blocked++
		}
	}
	if c.options.Remote == nil {
		return ""
	}
	return c.options.Remote(address)
}

// inline returns the address of a part of the message. It requests each part once, and stops
// showing parts before a message of images becomes many times larger than it arrived.
func (c *cleaner) inline(id string) string {
	if c.options.Inline == nil || c.shown >= maxInline {
		return ""
	}
	if plain, err := url.PathUnescape(id); err == nil {
		id = plain
	}
	address, asked := c.parts[id]
	if !asked {
		if len(c.parts) >= maxInline {
			return ""
		}
		address = c.options.Inline(id)
		c.parts[id] = address
	}
	if address != "" {
		c.shown++
	}
	return address
}
