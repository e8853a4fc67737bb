package template

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// place is where in html a variable stands, by what its value may do there.
type place int

const (
	inText  place = iota // text, or an attribute in quotes
	inStyle              // a style attribute
	inSheet              // a style sheet
	inLink               // an attribute with an address, whose scheme may be the variable's
)

// spot is the place of a variable, and of a link where its address begins and
// ends.
type spot struct {
	place    place
	from, to int
}

// spotter finds the places of the variables of a html text.
type spotter struct {
	src   string
	text  string // src with every variable made a word, of the same length
	vars  []variable
	spots []spot
	next  int // the first variable without a spot

	bare []int // where quotes are missing around the values of attributes, rising
}

// spotsOf returns the place of each variable, or an error for one that may not
// stand where it does. bare are the places in src where quotes are missing: with
// them it is to be called again.
func spotsOf(src string, vars []variable) (spots []spot, bare []int, err error) {
	text := []byte(src)
	for _, v := range vars {
		for i := v.from; i < v.to; i++ {
			text[i] = 'x'
		}
	}
	s := &spotter{src: src, text: string(text), vars: vars, spots: make([]spot, len(vars))}
	if err := s.markup(0, len(src), 0); err != nil {
		return nil, nil, err
	}
	return s.spots, s.bare, nil
}

// withQuotes returns src with a quote at each of these places.
func withQuotes(src string, places []int) string {
	var b strings.Builder
	at := 0
	for _, place := range places {
		b.WriteString(src[at:place])
		b.WriteByte('"')
		at = place
	}
	b.WriteString(src[at:])
	return b.String()
}

// maxNested is how deep mark-up may lie in elements and comments that some
// readers take for text.
const maxNested = 5

// markup goes through the tokens between from and to.
func (s *spotter) markup(from, to, nested int) error {
	z := html.NewTokenizer(strings.NewReader(s.text[from:to]))
	element := "" // that has just begun
	for at := from; s.before(to); {
		kind := z.Next()
		if kind == html.ErrorToken {
			return s.refuse("stands in a tag that does not end")
		}
		end := at + len(z.Raw())
		var err error
		name := ""
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			name = tagName(s.text[at:end])
			err = s.tag(at, end)
		case html.EndTagToken, html.DoctypeToken:
			err = s.tag(at, end)
		case html.CommentToken:
			err = s.comment(at, end, nested)
		default:
			err = s.content(element, at, end, nested)
		}
		if err != nil {
			return err
		}
		element, at = name, end
	}
	return nil
}

// before says whether there is a further variable, and before to.
func (s *spotter) before(to int) bool { return s.next < len(s.vars) && s.vars[s.next].from < to }

// all puts the variables before to into one place.
func (s *spotter) all(to int, sp spot) {
	for ; s.before(to); s.next++ {
		s.spots[s.next] = sp
	}
}

func (s *spotter) refuse(why string) error {
	v := s.vars[s.next]
	return &Error{Part: HTML, Reason: "has " + excerpt(s.src[v.from:]) + " where no variable may be: it " + why + placeOf(s.src, v.from)}
}

// placeOf says where in a text something is.
func placeOf(src string, at int) string {
	before := src[:at]
	line := strings.LastIndexByte(before, '\n') + 1
	return " (line " + strconv.Itoa(strings.Count(before, "\n")+1) + ", column " + strconv.Itoa(utf8.RuneCountInString(before[line:])+1) + ")"
}

// content is the text after the begin of an element. What some readers take for
// text is mark-up for others: it has to be good as both.
func (s *spotter) content(element string, from, to, nested int) error {
	switch element {
	case "script":
		if s.before(to) {
			return s.refuse("stands in a script")
		}
	case "style":
		s.all(to, spot{place: inSheet})
	case "iframe", "noembed", "noframes", "noscript", "plaintext", "textarea", "title", "xmp":
		return s.again(from, to, nested)
	}
	s.all(to, spot{place: inText})
	return nil
}

// comment is text that nobody sees, or mark-up for one mail program:
// <!--[if mso]> ... <![endif]-->.
func (s *spotter) comment(from, to, nested int) error {
	text := s.text[from:to]
	if begin := strings.Index(text, "]>"); begin >= 0 && strings.HasPrefix(text, "<!--[if") {
		end := max(begin+2, strings.LastIndex(text, "<![endif]"))
		if s.before(from + begin + 2) {
			return s.refuse("stands in the condition of a comment")
		}
		if err := s.again(from+begin+2, from+end, nested); err != nil {
			return err
		}
	}
	s.all(to, spot{place: inText})
	return nil
}

func (s *spotter) again(from, to, nested int) error {
	if !s.before(to) {
		return nil
	}
	if nested == maxNested {
		return s.refuse("stands too deep in comments and elements of plain text")
	}
	return s.markup(from, to, nested+1)
}

// tag is one tag, in which variables may be in the quotes of attributes.
func (s *spotter) tag(from, to int) error {
	if !s.before(to) {
		return nil
	}
	for _, a := range attributes(s.text[from:to]) {
		begin, end := from+a.from, from+a.to
		if s.before(begin) {
			break
		}
		if !s.before(end) {
			continue
		}
		if !a.quoted { // its place is found when it has quotes
			if strings.ContainsRune(s.text[begin:end], '"') {
				return s.refuse("stands in an attribute without quotes that holds a quote")
			}
			s.bare = append(s.bare, begin, end)
			s.all(end, spot{})
			continue
		}
		sp, why := s.attribute(a.name, begin, end)
		if why != "" {
			return s.refuse(why)
		}
		s.all(end, sp)
	}
	if s.before(to) {
		return s.refuse("is part of a tag, and not in the quotes of an attribute")
	}
	return nil
}

// links are the attributes that hold an address.
var links = []string{
	"action", "archive", "background", "cite", "classid", "codebase", "data", "dynsrc", "formaction", "href", "icon", "longdesc",
	"lowsrc", "manifest", "ping", "poster", "profile", "src", "srcset", "usemap",
}

// attribute is the place in the value of an attribute, or why none may be there.
func (s *spotter) attribute(name string, from, to int) (spot, string) {
	if i := strings.LastIndexByte(name, ':'); i >= 0 { // such as xlink:href
		name = name[i+1:]
	}
	switch {
	case strings.HasPrefix(name, "on"), name == "srcdoc":
		return spot{}, "stands in an attribute that holds a script or a page"
	case name == "style":
		return spot{place: inStyle}, ""
	case !slices.Contains(links, name):
		return spot{place: inText}, ""
	}
	written := html.UnescapeString(s.src[from:s.vars[s.next].from])
	switch scheme, ok := schemeOf(written); {
	case ok && (scheme == "javascript" || scheme == "vbscript"):
		return spot{}, "stands in a script"
	case ok, strings.ContainsAny(written, "/?#"):
		return spot{place: inText}, "" // where the link goes is written in the template
	}
	return spot{inLink, from, to}, ""
}
