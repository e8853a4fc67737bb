// Package css reads style sheets as browsers do, and finds the text of a page that a person does
// not see. It is the one detector of hidden text: for drafts and for received mail.
package css

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// The reasons why text is hidden.
const (
	byDisplay  = "display"
	byOpacity  = "opacity"
	bySize     = "size"
	byColour   = "colour"
	byPosition = "off screen"
	byClipping = "clipped"
	byDepth    = "nested too deep"
	// Sometimes follows the reason if a rule of a media query hides the text, or a rule
	// that may not apply.
	Sometimes = ", for some readers"
)

const (
	// maxDepth is how deep elements are told apart. A deeper one has only its own styles and
	// those at this depth.
	maxDepth = 4096
	// maxStyle is the longest style attribute that is read, in bytes.
	maxStyle = 256 << 10
	// maxKids is how many elements before an element are compared with a selector.
	maxKids = 64
	// maxCached is how many style attributes are kept in their parsed form.
	maxCached = 256
	// smallestSize is the size of the smallest letters that count as seen, in pixels.
	smallestSize = 4
	// lowestContrast is the lowest contrast between letters and background that counts
	// as seen. Light grey on white has 1.6.
	lowestContrast = 1.25
	// lowestOpacity is the lowest opacity that counts as seen.
	lowestOpacity = 0.15
	// farAway is how far text may be moved, in pixels, and farBack how far against the
	// direction of the text. A space of less than ordinarySpace does not count.
	farAway, farBack, ordinarySpace = 1500, -150, 200
)

// ident is what a selector knows of an element.
type ident struct {
	tag, id string
	classes []string         // each once, in alphabetical order
	attrs   []html.Attribute // in lower case, only if a selector asks for attributes
	cost    int              // of comparing the attributes
	place   int              // among the elements in its parent, if a selector asks for siblings
}

// The styles that move the content of an element.
const (
	left = iota
	top
	marginLeft
	marginTop
	paddingLeft
	paddingTop
	right
	bottom
	moveX
	moveY
	moves
)

// The sizes of the box of an element.
const (
	height = iota
	maxHeight
	width
	maxWidth
	sizes
)

// look is the appearance of an element and its content.
type look struct {
	ident
	kids    []ident // of the elements inside it, if a selector asks for siblings
	implied bool

	// What its content inherits.
	letters  rgba
	fill     *rgba // paints the letters instead
	ground   rgba
	unknown  bool // the background has an image
	coloured bool // an element has a background, other than the page
	size     float64
	indent   float64
	spacing  float64 // between letters
	line     bool    // lines overlap
	unseen   bool    // by visibility
	vars     *scope

	// The effect of the elements around it: why they hide it, how opaque they leave
	// it, how far to the right or down they move it, in pixels, and how large they show it.
	outerHidden    string
	outerOpacity   float64
	outerX, outerY float64
	outerScale     float64
	outerUnknown   bool // their background has an image
	outerVars      *scope

	// Its own styles.
	image, clear   bool // its background has an image, or lets the one of its parent shine through
	animation      []Token
	filled         bool // its background has a colour
	pieced         bool // more than one declaration, or a variable, makes the animation
	none           bool // by display
	inline         bool // it has no box of its own
	cuts           bool
	covered        string // why a clip, a mask or a filter hides it
	clip           bool   // hidden by the style clip if it has a position
	position       string
	behind         bool
	folded         bool // inside of a closed element
	opacity, scale float64
	move           [moves]float64
	box            [sizes]float64 // negative if it is not set

	hidden string // why its content is hidden
	why    string // why its text is hidden
}

// A Finder follows the elements of a page to find hidden text.
type Finder struct {
	rules      *ruleIndex
	open       []look
	deep       int // open elements beyond maxDepth
	deepHidden int // which of them is hidden, or 0
	implied    int // open elements whose tags were not read
	styles     map[string][]declaredStyle
	// Quirks means that the page has no doctype, so that tables do not inherit font
	// sizes.
	Quirks bool
}

// NewFinder returns a finder for a page with a style sheet. A strict one also finds text that
// is hidden from some readers only, or by rules that may not apply.
func NewFinder(sheet string, strict bool) *Finder {
	page := look{letters: black, ground: white, size: 16, opacity: 1, outerOpacity: 1, scale: 1, outerScale: 1, box: noBox}
	f := &Finder{rules: indexRules(sheet, strict), open: []look{page}, styles: map[string][]declaredStyle{}}
	f.imply("html")
	f.imply("body")
	return f
}

// imply opens an element that every page has, also without its tag.
func (f *Finder) imply(tag string) {
	f.open = append(f.open, look{})
	f.enter(tag, nil)
	f.open[len(f.open)-1].implied = true
	f.implied++
}

// replaceImplied closes the implied elements that a tag takes the place of, or comes before, if
// nothing is in them yet.
func (f *Finder) replaceImplied(tag string) {
	if tag != "html" && tag != "head" && tag != "body" {
		return
	}
	for last := len(f.open) - 1; f.open[last].implied; last-- {
		f.End()
		if tag != "html" {
			return
		}
	}
}

var noBox = [sizes]float64{-1, -1, -1, -1}

// Complex reports whether the styles take too much work, or are too long or too deep. They are
// then ignored in part.
func (f *Finder) Complex() bool { return f.rules.work < 0 || f.rules.partial }

// WhyHidden returns why text in the innermost open element is hidden, or an empty string.
func (f *Finder) WhyHidden() string {
	if f.deepHidden > 0 {
		return byDepth
	}
	return f.open[len(f.open)-1].why
}

// HidesAll returns why everything in the innermost open element is hidden, or an empty string.
func (f *Finder) HidesAll() string {
	if f.deepHidden > 0 {
		return byDepth
	}
	return f.open[len(f.open)-1].hidden
}

// Size returns the size of the letters in the innermost open element, in pixels.
func (f *Finder) Size() float64 { return f.open[len(f.open)-1].size }

// Start opens an element that is not void.
func (f *Finder) Start(tag string, attrs []html.Attribute) {
	if len(f.open) <= maxDepth {
		f.replaceImplied(tag)
		f.open = append(f.open, look{})
		f.enter(tag, attrs)
		if tag == "html" {
			f.imply("body")
		}
		return
	}
	if f.deep++; f.deepHidden == 0 && len(attrs) > 0 {
		f.open = append(f.open, look{})
		f.enter(tag, attrs)
		if f.open[maxDepth+1].why != "" {
			f.deepHidden = f.deep
		}
		f.open = f.open[:maxDepth+1]
	}
}

// StartVoid reports why an element without content is hidden, or an empty string.
func (f *Finder) StartVoid(tag string, attrs []html.Attribute) string {
	f.Start(tag, attrs)
	why := f.HidesAll()
	f.End()
	return why
}

func (f *Finder) enter(tag string, attrs []html.Attribute) {
	parent, l := &f.open[len(f.open)-2], &f.open[len(f.open)-1]
	parent.begin(l, tag, attrs, f.rules, f.Quirks)
	var rules []matched
	if len(f.rules.rules) > 0 && f.rules.work >= 0 {
		rules, _ = f.rules.of(f.open)
	}
	if f.rules.siblings {
		if len(parent.kids) == maxKids {
			parent.kids = append(parent.kids[:0], parent.kids[maxKids/2:]...)
		}
		parent.kids = append(parent.kids, l.ident)
	}
	own := f.inlineStyle(attrs)
	if len(rules) == 0 && len(own) == 0 {
		l.settle(f.rules.strict)
		return
	}
	l.apply(rules, own, parent, f.rules)
}

// wanted are the attributes that decide whether text is seen.
var wanted = setOf(`id class style bgcolor background color text size href hidden popover open`)

// Wants reports whether the finder reads an attribute.
func (f *Finder) Wants(attribute []byte) bool { return f.rules.attrs || wanted[string(attribute)] }

// before returns the elements before one of the elements inside l.
func (l *look) before(place int) []ident {
	n := slices.IndexFunc(l.kids, func(e ident) bool { return e.place >= place })
	if n < 0 {
		return l.kids
	}
	return l.kids[:n]
}

// End closes the innermost open element.
func (f *Finder) End() {
	if f.deep > 0 {
		if f.deepHidden == f.deep {
			f.deepHidden = 0
		}
		f.deep--
	} else if last := len(f.open) - 1; last > 0 {
		if f.open[last].implied {
			f.implied--
		}
		head := f.open[last].tag == "head"
		f.open[last] = look{}
		if f.open = f.open[:last]; head {
			f.imply("body")
		}
	}
}

// EndTag closes the innermost open element with this name, and what is open in it.
func (f *Finder) EndTag(name string) {
	if f.deep > 0 {
		f.End()
		return
	}
	for i := len(f.open) - 1; i > 0; i-- {
		if f.open[i].tag == name && !f.open[i].implied {
			for len(f.open) > i {
				f.End()
			}
			return
		}
	}
}

// Open returns how many elements are open whose tags were read.
func (f *Finder) Open() int { return len(f.open) - 1 - f.implied + f.deep }

// blocks are the elements that have a box of their own.
var blocks = setOf(`address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure footer
	form h1 h2 h3 h4 h5 h6 header hr html legend li main menu nav ol p pre section summary ul img button input`)

// growing are the elements whose box grows with its content, whatever its size.
var growing = setOf(`table tbody td tfoot th thead tr caption`)

// begin makes in the look of an element inside l before its own styles.
func (l *look) begin(in *look, tag string, attrs []html.Attribute, rules *ruleIndex, quirks bool) {
	*in = look{
		ident: ident{tag: tag}, letters: l.letters, fill: l.fill, ground: l.ground, unknown: l.unknown, coloured: l.coloured, size: l.size, indent: l.indent, spacing: l.spacing,
		line: l.line, unseen: l.unseen, vars: l.vars, outerHidden: l.hidden, outerOpacity: l.opacity * l.outerOpacity, outerScale: l.scale * l.outerScale,
		outerUnknown: l.unknown, outerVars: l.vars, clear: true, opacity: 1, scale: 1, box: noBox,
	}
	in.outerX, in.outerY = l.moved()
	in.inline = !blocks[tag] && !growing[tag]
	if rules.siblings {
		if n := len(l.kids); n > 0 {
			in.place = l.kids[n-1].place + 1
		}
	}
	if rules.attrs {
		in.attrs, in.cost = slices.Clone(attrs), 1+len(attrs)/4
		for _, at := range in.attrs {
			in.cost += len(at.Val) / bytesOfWork
		}
	}
	open := false
	for _, at := range attrs {
		switch at.Key {
		case "id":
			in.id = strings.ToLower(at.Val)
		case "class":
			in.classes = strings.Fields(strings.ToLower(at.Val))
			slices.Sort(in.classes)
			in.classes = slices.Compact(in.classes)
		case "bgcolor":
			in.setGround("background-color", (&Tokens{s: strings.TrimPrefix(at.Val, "#")}).all())
		case "background":
			in.image = at.Val != ""
		case "color":
			if tag == "font" {
				in.setLetters((&Tokens{s: strings.TrimPrefix(at.Val, "#")}).all(), l)
			}
		case "text":
			if tag == "body" {
				in.setLetters((&Tokens{s: strings.TrimPrefix(at.Val, "#")}).all(), l)
			}
		case "size":
			if size, ok := fontSizes[at.Val]; ok && tag == "font" {
				in.size = size
			}
		case "href":
			if tag == "a" {
				in.letters = linkBlue
			}
		case "hidden", "popover":
			in.none = true
		case "open":
			open = true
		}
	}
	switch tag {
	case "small", "sub", "sup":
		in.size *= 0.83
	case "mark":
		in.letters, in.ground, in.clear = black, rgba{1, 1, 0, 1}, false
	case "table":
		if quirks {
			in.size = 16
		}
	case "dialog":
		in.none = in.none || !open
	case "details":
		in.folded = !open
	}
	if l.folded && tag != "summary" {
		in.none = true
	}
}

// fontSizes are the sizes of the element font, in pixels.
var fontSizes = map[string]float64{"1": 10, "2": 13, "3": 16, "4": 18, "5": 24, "6": 32, "7": 48}

// inlineStyle returns the declarations of the style attribute.
func (f *Finder) inlineStyle(attrs []html.Attribute) []declaredStyle {
	i := slices.IndexFunc(attrs, func(at html.Attribute) bool { return at.Key == "style" })
	if i < 0 {
		return nil
	}
	if len(attrs[i].Val) > maxStyle {
		f.rules.partial = true
		return nil
	}
	s := attrs[i].Val
	set, known := f.styles[s]
	if !known {
		set = relevantIn(&Tokens{s: unescape(s)})
		if len(f.styles) < maxCached {
			f.styles[s] = set
		}
	}
	return set
}

func (r *Tokens) all() []Token {
	var out []Token
	for t := r.Next(); t.Kind != End; t = r.Next() {
		out = append(out, t)
	}
	return out
}

// apply sets the styles of an element: those of rules, the strongest last, and its own.
func (l *look) apply(rules []matched, own []declaredStyle, parent *look, x *ruleIndex) {
	before := *l
	l.cascade(rules, own, nil, parent, x)
	if len(l.animation) > 0 && !x.strict && !l.none { // browsers do not animate what is not displayed
		after := before
		if frame, plain := x.lastFrame(l); len(frame) > 0 {
			after.cascade(rules, own, frame, parent, x)
			switch {
			case plain:
				*l = after
			case l.why == "" && after.why != "":
				l.outerHidden = after.why
				l.settle(x.strict)
			}
		}
	}
	if l.why != "" {
		return
	}
	// A rule that may hold only for some readers hides an element for them, whatever the
	// other rules say.
	for _, m := range rules {
		if !m.sometimes {
			continue
		}
		maybe := *l
		maybe.set(m.declaredStyle, parent, x)
		maybe.settle(x.strict)
		if maybe.why != "" {
			l.outerHidden = maybe.why + Sometimes
			l.settle(x.strict)
			return
		}
	}
}

// cascade sets the styles of an element as its animation leaves them: those of rules, its own,
// those of the last frame, and then the important ones.
func (l *look) cascade(rules []matched, own, frame []declaredStyle, parent *look, x *ruleIndex) {
	set := func(d declaredStyle) {
		if strings.HasPrefix(d.name, "--") {
			l.setVar(d, x)
		} else {
			l.set(d, parent, x)
		}
	}
	for _, important := range []bool{false, true} {
		for i := range rules {
			if m := &rules[i]; m.important == important && !m.sometimes {
				set(m.declaredStyle)
			}
		}
		for i := range own {
			if own[i].important == important {
				set(own[i])
			}
		}
		for i := range frame {
			if !important && !frame[i].important && !isAnimation(frame[i].name) {
				set(frame[i])
			}
		}
	}
	if x.strict && l.spacing <= -l.size/2 {
		l.line = true
	}
	l.settle(x.strict)
}

// settle computes why the element is hidden. A strict finder reads a page without the images of
// backgrounds that have a colour.
func (l *look) settle(strict bool) {
	l.unknown = l.image && !(strict && l.filled) || l.outerUnknown && l.clear
	l.hidden = l.hides()
	l.why = l.whyHidden()
}

// hides returns why the content of the element is hidden, or an empty string.
func (l *look) hides() string {
	switch {
	case l.outerHidden != "":
		return l.outerHidden
	case l.none:
		return byDisplay
	case l.covered != "":
		return l.covered
	case l.clip && (l.position == "absolute" || l.position == "fixed"):
		return byClipping
	case l.behind && l.position != "" && l.coloured:
		return byPosition
	case l.opacity*l.outerOpacity < lowestOpacity:
		return byOpacity
	case l.scale*l.outerScale*100 < smallestSize:
		return bySize
	}
	if !l.cuts || l.inline && l.position != "absolute" && l.position != "fixed" || growing[l.tag] {
		return ""
	}
	for _, n := range l.box {
		if n >= 0 && n <= smallestSize {
			return byClipping
		}
	}
	return ""
}

// moved returns how far the content of the element is moved to the right and down, in pixels.
func (l *look) moved() (x, y float64) {
	x, y = l.outerX+l.move[moveX], l.outerY+l.move[moveY]
	for i, n := range l.move[:right] {
		if i < marginLeft && l.position == "" || n >= 0 && n < ordinarySpace {
			continue
		}
		if i%2 == 0 {
			x += n
		} else {
			y += n
		}
	}
	if l.position != "" {
		x, y = x-l.move[right], y-l.move[bottom]
	}
	return x, y
}

// whyHidden returns why the text of an element is hidden, or an empty string.
func (l *look) whyHidden() string {
	if l.hidden != "" {
		return l.hidden
	}
	x, y := l.moved()
	x += l.indent
	letters := l.letters
	if l.fill != nil {
		letters = *l.fill
	}
	switch {
	case l.unseen:
		return byDisplay
	case l.size*l.scale*l.outerScale < smallestSize, l.line, l.spacing <= -l.size/2:
		return bySize
	case x > farAway, x < farBack, y > farAway, y < farBack:
		return byPosition
	case l.unknown && letters.alpha < lowestOpacity && l.fill == nil: // letters cut out of an image
	case letters.alpha < lowestOpacity:
		return byColour
	case !l.unknown && contrast(letters.over(l.ground), l.ground) < lowestContrast:
		return byColour
	}
	return ""
}

// scope has the variables that one element sets, and those around it.
type scope struct {
	own   map[string][]Token
	outer *scope
}

func (l *look) setVar(d declaredStyle, x *ruleIndex) {
	x.work -= 2
	if l.vars == l.outerVars {
		l.vars = &scope{map[string][]Token{}, l.outerVars}
	}
	l.vars.own[d.name] = d.value[:min(len(d.value), maxResolved+1)]
}

// variable returns the value of a variable.
func (l *look) variable(name string, x *ruleIndex) ([]Token, bool) {
	for s := l.vars; s != nil && x.work >= 0; s = s.outer {
		x.work--
		if v, set := s.own[name]; set {
			return v, true
		}
	}
	return nil, false
}

// maxResolved is the longest value with variables that is read, in tokens.
const maxResolved = 200

// resolved returns a value with the values of its variables, for as long as there is work
// left.
func (l *look) resolved(v []Token, depth int, x *ruleIndex) []Token {
	if !slices.ContainsFunc(v, func(t Token) bool { return t.Kind == Function && t.Text == "var" }) {
		return v
	}
	if depth == 0 || len(v) > maxResolved {
		x.partial = true
		return v
	}
	var out []Token
	for i := 0; i < len(v) && x.work >= 0; i++ {
		if v[i].Kind != Function || v[i].Text != "var" {
			out = append(out, v[i])
			continue
		}
		end := i + 1
		for open := (Brackets{')'}); end < len(v); end++ {
			if open.Take(v[end]); len(open) == 0 {
				break
			}
		}
		inner := v[i+1 : min(end, len(v))]
		i = end
		x.work -= 1 + len(v)/4
		name := slices.IndexFunc(inner, func(t Token) bool { return t.Kind == Ident })
		if name < 0 {
			continue
		}
		if value, known := l.variable(strings.ToLower(inner[name].Text), x); known {
			x.work -= len(value)
			out = append(out, l.resolved(value, depth-1, x)...)
		} else if comma := slices.IndexFunc(inner, func(t Token) bool { return t.Is(",") }); comma >= 0 {
			out = append(out, l.resolved(inner[comma+1:], depth-1, x)...)
		}
		if len(out) > maxResolved {
			x.partial = true
			break
		}
	}
	for len(out) > 0 && out[0].Kind == Space {
		out = out[1:]
	}
	return out
}
