package template

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// place is the kind of place of a variable in html, by what its value may do there.
type place int

const (
	inText  place = iota // text, or an attribute in quotes
	inStyle              // a style attribute
	inSheet              // a style sheet
	inLink               // an attribute with an address, whose scheme may come from the variable
)

// spot is the place of a variable and, for a link, where its address begins and ends.
type spot struct {
	place    place
	from, to int
	between  bool // between elements, for every program that reads the HTML
}

// spotter finds the places of the variables of an html text.
type spotter struct {
	src   string
	text  string // src with every variable replaced by a word of the same length
	vars  []variable
	spots []spot
	next  int // the first variable without a spot

	bare []int // positions of missing quotes around attribute values, in order
}

// spotsOf returns the place of each variable, or an error for one in a forbidden place. bare
// are the positions in src where quotes are missing; if there are any, the caller adds the
// quotes and calls spotsOf again.
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

// withQuotes returns src with a quote at each of these positions.
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

// maxNested is how deep markup may be nested in elements and comments that some programs
// parse as text.
const maxNested = 5

// markup scans the tokens between from and to.
func (s *spotter) markup(from, to, nested int) error {
	z := html.NewTokenizer(strings.NewReader(s.text[from:to]))
	element := "" // whose start tag was just read
	for at := from; s.before(to); {
		kind := z.Next()
		if kind == html.ErrorToken {
			return s.refuse("is in a tag that does not end")
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

// before reports whether there is a further variable before to.
func (s *spotter) before(to int) bool { return s.next < len(s.vars) && s.vars[s.next].from < to }

// all assigns one place to the variables before to.
func (s *spotter) all(to int, sp spot) {
	for ; s.before(to); s.next++ {
		s.spots[s.next] = sp
	}
}

func (s *spotter) refuse(why string) error {
	v := s.vars[s.next]
	return &Error{Part: HTML, Reason: "has " + excerpt(s.src[v.from:]) + " in a place without variables: it " + why + placeOf(s.src, v.from)}
}

// placeOf returns the line and column of a position in a text.
func placeOf(src string, at int) string {
	before := src[:at]
	line := strings.LastIndexByte(before, '\n') + 1
	return " (line " + strconv.Itoa(strings.Count(before, "\n")+1) + ", column " + strconv.Itoa(utf8.RuneCountInString(before[line:])+1) + ")"
}

// content scans the text after the start tag of an element. Some programs parse it as text
// and others as markup, so it must be safe as both.
func (s *spotter) content(element string, from, to, nested int) error {
	switch element {
	case "script":
		if s.before(to) {
			return s.refuse("is in a script")
		}
	case "style":
		s.all(to, spot{place: inSheet})
	case "iframe", "noembed", "noframes", "noscript", "plaintext", "textarea", "title", "xmp":
		return s.again(from, to, nested)
	}
	s.all(to, spot{place: inText, between: nested == 0})
	return nil
}

// comment scans a comment, which is invisible, or is markup for one mail program:
// <!--[if mso]> ... <![endif]-->.
func (s *spotter) comment(from, to, nested int) error {
	text := s.text[from:to]
	if begin := strings.Index(text, "]>"); begin >= 0 && strings.HasPrefix(text, "<!--[if") {
		end := max(begin+2, strings.LastIndex(text, "<![endif]"))
		if s.before(from + begin + 2) {
			return s.refuse("is in the condition of a comment")
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
		return s.refuse("is nested too deep in comments and elements of plain text")
	}
	return s.markup(from, to, nested+1)
}

// tag scans one tag. Variables may be inside the quotes of its attributes.
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
		if !a.quoted { // its place is found once it has quotes
			if strings.ContainsRune(s.text[begin:end], '"') {
				return s.refuse("is in an attribute without quotes that contains a quote")
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
		return s.refuse("is in a tag, but not in the quotes of an attribute")
	}
	return nil
}

// links are the attributes with an address.
var links = []string{
	"action", "archive", "background", "cite", "classid", "codebase", "data", "dynsrc", "formaction", "href", "icon", "longdesc",
	"lowsrc", "manifest", "ping", "poster", "profile", "src", "srcset", "usemap",
}

// attribute returns the place in the value of an attribute, or why a variable is refused there.
func (s *spotter) attribute(name string, from, to int) (spot, string) {
	if i := strings.LastIndexByte(name, ':'); i >= 0 { // such as xlink:href
		name = name[i+1:]
	}
	switch {
	case strings.HasPrefix(name, "on"), name == "srcdoc":
		return spot{}, "is in an attribute that contains a script or a page"
	case name == "style":
		return spot{place: inStyle}, ""
	case !slices.Contains(links, name):
		return spot{place: inText}, ""
	}
	written := html.UnescapeString(s.src[from:s.vars[s.next].from])
	switch scheme, ok := schemeOf(written); {
	case ok && (scheme == "javascript" || scheme == "vbscript"):
		return spot{}, "is in a script"
	case ok, strings.ContainsAny(written, "/?#"):
		return spot{place: inText}, "" // the template determines the target
	}
	return spot{place: inLink, from: from, to: to}, ""
}
