package mailhtml

import (
	"regexp"
	"strings"

	"golang.org/x/net/html"
)

// element is an allowed element.
type element struct {
	name string // the name in the output; empty means unchanged
	void bool   // has neither content nor an end tag
}

// elements are the allowed elements. None of them changes how a browser parses what follows.
var elements = func() map[string]element {
	m := map[string]element{
		"body": {name: "div"}, "center": {},
		"br": {void: true}, "hr": {void: true}, "img": {void: true}, "wbr": {void: true}, "col": {void: true},
	}
	for name := range strings.FieldsSeq(`a abbr address article aside b bdi bdo big blockquote caption cite code colgroup
		dd del dfn div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i ins kbd li main mark nav ol p
		pre q s samp section small span strike strong sub sup table tbody td tfoot th thead time tr tt u ul var`) {
		if _, there := m[name]; !there {
			m[name] = element{}
		}
	}
	return m
}()

// leftOut are the elements that are removed with their content.
var leftOut = setOf(`applet audio canvas embed frameset iframe math noembed noframes noscript object plaintext script select
	svg template textarea title video xmp`)

// rawText are the elements of leftOut that a tokenizer reads to their end tag, whatever
// their start tag contains.
var rawText = setOf(`iframe noembed noframes noscript plaintext script style textarea title xmp`)

func setOf(names string) map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		m[name] = true
	}
	return m
}

var (
	measure = regexp.MustCompile(`^[0-9]{1,5}(\.[0-9]{1,3})?(px|%)?$`)
	word    = regexp.MustCompile(`^[A-Za-z0-9_ -]{1,80}$`)
	colour  = regexp.MustCompile(`^#?[A-Za-z0-9]{1,30}$`)
	names   = regexp.MustCompile(`^[\pL\pN_ :.-]+$`)
	faces   = regexp.MustCompile(`^[\pL\pN ,'_-]+$`)
)

// maxValue is the longest value of these attributes, in bytes.
const maxValue = 1000

// attributes are the attributes allowed on every element, with their allowed values.
var attributes = map[string]*regexp.Regexp{
	"align": word, "valign": word, "dir": word, "lang": word, "class": names, "id": names, "role": word, "type": word,
	"bgcolor": colour, "color": colour, "face": faces, "size": word, "clear": word,
	"width": measure, "height": measure, "border": measure, "cellpadding": measure, "cellspacing": measure,
	"hspace": measure, "vspace": measure, "start": measure, "value": measure,
	"colspan": regexp.MustCompile(`^[0-9]{1,3}$`), "rowspan": regexp.MustCompile(`^[0-9]{1,3}$`),
}

// harmless are the attributes that are written in other ways, or whose removal changes
// nothing.
var harmless = setOf(`href src srcset target rel style xmlns`)

// attribute writes an attribute of an element if it is allowed.
func (c *cleaner) attribute(element string, at html.Attribute) {
	value := strings.TrimSpace(at.Val)
	switch at.Key {
	case "style":
		if s := c.styleAttribute(element, value); s != "" {
			c.set("style", s)
		}
	case "background":
		if u := c.imageURL(value); u != "" {
			c.set("background", u)
		}
	case "alt", "title":
		if element != "a" || at.Key != "title" { // the title of a link shows its target
			c.set(at.Key, value)
		} else {
			c.sending.remove("attribute title", value)
		}
	default:
		allowed := attributes[at.Key]
		switch {
		case allowed != nil && len(value) <= maxValue && allowed.MatchString(value):
			c.set(at.Key, value)
		case !harmless[at.Key] && value != "":
			c.sending.remove("attribute "+nameOf(at.Key), value)
		}
	}
}
