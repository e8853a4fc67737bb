package mailhtml

import (
	"regexp"
	"strings"

	"github.com/postroom/postroom/internal/mail/css"
)

// properties are the style properties that a message may set. They do not include properties
// that put content on top of other content, move it, or add content.
var properties = setOf(`background background-color background-image background-position background-repeat background-size
	background-clip background-origin border border-top border-right border-bottom border-left border-color border-style
	border-width border-top-color border-right-color border-bottom-color border-left-color border-top-style
	border-right-style border-bottom-style border-left-style border-top-width border-right-width border-bottom-width
	border-left-width border-radius border-top-left-radius border-top-right-radius border-bottom-left-radius
	border-bottom-right-radius border-collapse border-spacing box-shadow box-sizing caption-side clear color direction
	display empty-cells flex flex-basis flex-direction flex-flow flex-grow flex-shrink flex-wrap float font font-family
	font-size font-stretch font-style font-variant font-weight gap column-gap row-gap height hyphens justify-content
	align-content align-items align-self justify-items justify-self order letter-spacing line-height list-style
	list-style-image list-style-position list-style-type margin margin-top margin-right margin-bottom margin-left
	max-height max-width min-height min-width object-fit opacity outline outline-color outline-style outline-width
	overflow overflow-wrap overflow-x overflow-y padding padding-top padding-right padding-bottom padding-left
	table-layout text-align text-align-last text-decoration text-decoration-color text-decoration-line
	text-decoration-style text-indent text-overflow text-shadow text-transform unicode-bidi vertical-align visibility
	white-space width word-break word-spacing word-wrap`)

// showsImage are the properties whose value may contain an image.
var showsImage = setOf(`background background-image list-style list-style-image`)

// functions are the functions that a value may call.
var functions = setOf(`rgb rgba hsl hsla calc min max clamp linear-gradient radial-gradient repeating-linear-gradient
	repeating-radial-gradient`)

// plainString matches what may be in quotes: the name of a font.
var plainString = regexp.MustCompile(`^[\pL\pN ._-]+$`)

// styleAttribute returns the allowed declarations of the style attribute of an element.
func (c *cleaner) styleAttribute(element, s string) string {
	if len(s) > maxStyle {
		return ""
	}
	return c.declarations(css.NewTokens(s), element)
}

// declarations reads to the end of a block or of the input, and returns the allowed
// declarations. element is the element that they apply to, or empty if it is unknown.
func (c *cleaner) declarations(r *css.Tokens, element string) string {
	var out strings.Builder
	css.EachDeclaration(r, func(name string, value []css.Token) {
		if d := c.declaration(name, value, element); d != "" {
			if out.Len() > 0 {
				out.WriteByte(';')
			}
			out.WriteString(d)
		}
	})
	return out.String()
}

// declaration returns the allowed form of a declaration, or an empty string.
func (c *cleaner) declaration(name string, value []css.Token, element string) string {
	given := name
	if name != "" && properties[name] && c.sending == nil {
		name, value = legible(name, value, element)
		if c.options.Reveal && hides(name, value) {
			return ""
		}
	}
	if name == "" || !properties[name] {
		c.sending.removeStyle(given)
		return ""
	}
	form := cssForm{marks: ",/)!*+-", functions: functions}
	if showsImage[name] {
		form.images = c.imageURL
	}
	text, ok := form.write(value)
	if !ok {
		c.sending.removeStyle(given)
		return ""
	}
	if text = strings.TrimSpace(text); text == "" || strings.HasPrefix(text, "!") {
		return ""
	}
	return name + ":" + text
}

// cssEscape escapes a URL so that it cannot end a string. A URL needs none of these characters
// unescaped.
func cssEscape(u string) string {
	return strings.NewReplacer(`"`, "%22", `\`, "%5C", "<", "%3C", "\n", "%0A", "\r", "%0D", "\f", "%0C").Replace(u)
}
