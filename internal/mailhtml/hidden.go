package mailhtml

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/html"
)

// Hidden is a piece of text that readers of a message, or some of them, do not see.
type Hidden struct {
	Text string
	Why  string // the reason
}

// The reasons why text is hidden.
const (
	hiddenByDisplay  = "display"
	hiddenByOpacity  = "opacity"
	hiddenBySize     = "size"
	hiddenByColour   = "colour"
	hiddenByPosition = "off screen"
	hiddenByClipping = "clipped"
	// sometimesHidden follows the reason if a rule of a media query hides the text, or
	// a rule that may not apply.
	sometimesHidden = ", for some readers"
)

const (
	// smallestSize is the size of the smallest letters that count as seen, in pixels.
	smallestSize = 4
	// lowestContrast is the lowest contrast between letters and background that counts
	// as seen. Light grey on white has 1.6.
	lowestContrast = 1.25
	// farAway is how far text may be moved, in pixels, and farBack how far against the
	// direction of the text.
	farAway, farBack = 1500, -150
)

// look is the appearance of an element and its content.
type look struct {
	tag, id string
	classes []string

	letters rgba
	ground  rgba
	unknown bool // the background is an image
	size    float64
	indent  float64
	unseen  bool // by visibility

	// The effect of the elements around it: why they hide it, how opaque they leave
	// it, and how far to the right or down they move it, in pixels.
	outerHidden  string
	outerOpacity float64
	outerShift   float64

	// Its own styles.
	none, tight bool // hidden by display; hidden because lines or letters overlap
	cuts        bool
	opacity     float64
	lengths     map[string]float64 // of its box, in pixels, by style property
}

// newFinder returns a finder for a cleaned message.
func newFinder(source string) *finder {
	var sheet strings.Builder
	each(source, func(z *html.Tokenizer, inStyle bool, _ html.Token) {
		if inStyle {
			sheet.Write(z.Text())
		}
	})
	return &finder{indexRules(sheet.String()), []*look{{letters: black, ground: white, size: 16, opacity: 1, outerOpacity: 1}}}
}

// findHidden returns the hidden texts of a cleaned message in their order. It returns false
// if its styles take too much work.
func findHidden(source string) (out []Hidden, ok bool) {
	f := newFinder(source)
	each(source, func(_ *html.Tokenizer, inStyle bool, t html.Token) {
		switch {
		case t.Type == html.StartTagToken, t.Type == html.SelfClosingTagToken:
			f.start(t)
		case t.Type == html.EndTagToken:
			f.end(t.Data)
		case t.Type == html.TextToken && !inStyle && len(out) <= maxFindings:
			why := f.whyHidden(t.Data)
			if why == "" {
				return
			}
			text := excerpt(t.Data)
			if i := len(out) - 1; i >= 0 && out[i].Why == why && len(out[i].Text)+len(text) < maxExcerpt {
				out[i].Text += " " + text
				return
			}
			out = append(out, Hidden{text, why})
		}
	})
	return out[:min(len(out), maxFindings)], f.rules.work >= 0
}

// each calls do for each token of a message, except for the text of a style sheet.
func each(source string, do func(z *html.Tokenizer, inStyle bool, t html.Token)) {
	z := html.NewTokenizer(strings.NewReader(source))
	inStyle := false
	for {
		typ := z.Next()
		if typ == html.ErrorToken {
			return
		}
		if typ == html.TextToken && inStyle {
			do(z, true, html.Token{Type: typ})
			continue
		}
		t := z.Token()
		inStyle = typ == html.StartTagToken && t.Data == "style"
		do(z, false, t)
	}
}

// visible reports whether a text has a visible character.
func visible(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !unicode.Is(unicode.Mn, r)
	}) >= 0
}

// finder follows the elements of a message to find hidden text.
type finder struct {
	rules *ruleIndex
	open  []*look
}

// whyHidden returns why a text in the innermost open element is hidden, or an empty string.
func (f *finder) whyHidden(text string) string {
	if why := f.open[len(f.open)-1].whyHidden(); why != "" && visible(text) {
		return why
	}
	return ""
}

func (f *finder) start(t html.Token) {
	e, known := elements[t.Data]
	if !known || e.void || len(f.open) > maxDepth {
		return
	}
	if t.Data == "a" {
		f.end("a") // the open link ends, as in the cleaner
	}
	l := f.open[len(f.open)-1].inner(t)
	f.open = append(f.open, l)
	if set, ok := f.rules.of(f.open); ok {
		l.apply(set, inlineStyle(t))
	}
}

func (f *finder) end(name string) {
	for i, l := range slices.Backward(f.open) {
		if i > 0 && l.tag == name {
			f.open = f.open[:i]
			return
		}
	}
}

// inner returns the look of an element inside l before its own styles.
func (l *look) inner(t html.Token) *look {
	in := *l
	in.tag, in.id, in.classes = t.Data, "", nil
	in.outerHidden, in.outerOpacity, in.outerShift = l.hides(), l.opacity*l.outerOpacity, l.shift()
	in.none, in.tight, in.cuts, in.opacity, in.lengths = false, false, false, 1, nil
	for _, at := range t.Attr {
		switch at.Key {
		case "id":
			in.id = strings.ToLower(at.Val)
		case "class":
			in.classes = strings.Fields(strings.ToLower(at.Val))
		case "bgcolor":
			in.setGround((&cssTokens{s: strings.TrimPrefix(at.Val, "#")}).all())
		case "color":
			in.setLetters((&cssTokens{s: strings.TrimPrefix(at.Val, "#")}).all())
		case "size":
			if size, ok := fontSizes[at.Val]; ok && t.Data == "font" {
				in.size = size
			}
		}
	}
	switch t.Data {
	case "a":
		if _, leads := attr(t, "href"); leads {
			in.letters = linkBlue
		}
	case "small", "sub", "sup":
		in.size *= 0.83
	case "mark":
		in.letters, in.ground, in.unknown = black, rgba{1, 1, 0, 1}, false
	}
	return &in
}

// fontSizes are the sizes of the element font, in pixels.
var fontSizes = map[string]float64{"1": 10, "2": 13, "3": 16, "4": 18, "5": 24, "6": 32, "7": 48}

func inlineStyle(t html.Token) []declaredStyle {
	s, _ := attr(t, "style")
	if len(s) > maxStyle {
		return nil
	}
	return declarations(&cssTokens{s: s})
}

func (r *cssTokens) all() []cssToken {
	var out []cssToken
	for t := r.next(); t.kind != cssEnd; t = r.next() {
		out = append(out, t)
	}
	return out
}

// apply sets the styles of an element: those of rules, the strongest last, and its own.
func (l *look) apply(rules []matched, own []declaredStyle) {
	parent := l.size
	for _, important := range []bool{false, true} {
		for _, m := range rules {
			if m.important == important && !m.sometimes {
				l.set(m.declaredStyle, parent)
			}
		}
		for _, d := range own {
			if d.important == important {
				l.set(d, parent)
			}
		}
	}
	if l.whyHidden() != "" {
		return
	}
	// A rule that may hold only for some readers hides an element for them, whatever the
	// other rules say.
	for _, m := range rules {
		if !m.sometimes {
			continue
		}
		maybe := *l
		maybe.lengths = maps.Clone(l.lengths)
		maybe.set(m.declaredStyle, parent)
		if why := maybe.whyHidden(); why != "" {
			l.outerHidden = why + sometimesHidden
			return
		}
	}
}

// hides returns why the content of the element is hidden, or an empty string.
func (l *look) hides() string {
	if l.outerHidden != "" {
		return l.outerHidden
	}
	if l.none {
		return hiddenByDisplay
	}
	if l.tight {
		return hiddenBySize
	}
	for _, name := range []string{"height", "max-height", "width", "max-width"} {
		if n, set := l.lengths[name]; set && l.cuts && n <= smallestSize {
			return hiddenByClipping
		}
	}
	return ""
}

// shift returns how far the content of the element is moved, in pixels.
func (l *look) shift() float64 {
	sum := l.outerShift
	for name, n := range l.lengths {
		if strings.HasPrefix(name, "margin") || strings.HasPrefix(name, "padding") {
			sum += n
		}
	}
	return sum
}

// whyHidden returns why the text of an element is hidden, or an empty string.
func (l *look) whyHidden() string {
	if why := l.hides(); why != "" {
		return why
	}
	moved := l.shift() + l.indent
	switch {
	case l.unseen:
		return hiddenByDisplay
	case l.opacity*l.outerOpacity < 0.15:
		return hiddenByOpacity
	case l.size < smallestSize:
		return hiddenBySize
	case moved > farAway, moved < farBack:
		return hiddenByPosition
	case l.letters.alpha < 0.15:
		return hiddenByColour
	case !l.unknown && contrast(l.letters.over(l.ground), l.ground) < lowestContrast:
		return hiddenByColour
	}
	return ""
}

// set sets one style. parent is the font size around the element.
func (l *look) set(d declaredStyle, parent float64) {
	v := d.value
	switch d.name {
	case "display":
		word := strings.ToLower(v[0].text)
		l.none = word == "none" || strings.HasPrefix(word, "table-column")
	case "visibility":
		l.unseen = oneOf(v, "hidden", "collapse")
	case "opacity":
		if n, unit := measured(v[0]); unit == "%" {
			l.opacity = n / 100
		} else if unit == "" {
			l.opacity = n
		}
	case "color":
		l.setLetters(v)
	case "background", "background-color", "background-image":
		l.setGround(v)
	case "font-size":
		l.setSize(v[0], parent)
	case "font":
		for i, t := range v {
			if t.kind == cssNumber && (i == 0 || !v[i-1].is("/")) || t.kind == cssIdent && namedSizes[strings.ToLower(t.text)] > 0 {
				if _, unit := measured(t); unit != "" || t.text == "0" || t.kind == cssIdent { // not a weight
					l.setSize(t, parent)
				}
			}
		}
	case "line-height":
		n, unit := measured(v[0])
		l.tight = v[0].kind == cssNumber && (unit == "" && n < 0.2 || unit == "%" && n < 20)
	case "letter-spacing", "word-spacing":
		l.tight = l.most(v) <= -l.size/2
	case "text-indent":
		l.indent = l.most(v)
	case "margin", "margin-left", "margin-right", "margin-top", "margin-bottom", "padding", "padding-left", "padding-top":
		l.setLength(d.name, l.most(v))
	case "overflow", "overflow-x", "overflow-y":
		l.cuts = oneOf(v, "hidden", "clip", "scroll", "auto")
	case "height", "max-height", "width", "max-width":
		if v[0].kind == cssNumber {
			l.setLength(d.name, length(v[0], l.size, percentOfBox))
		} else {
			delete(l.lengths, d.name)
		}
	}
}

func (l *look) setLength(name string, n float64) {
	if l.lengths == nil {
		l.lengths = map[string]float64{}
	}
	l.lengths[name] = n
}

func (l *look) setLetters(v []cssToken) {
	if len(v) == 0 {
		return
	}
	if c, _, ok := readColour(v, 0); ok {
		l.letters = c
	}
}

// setGround sets the background. An image without a colour may have any.
func (l *look) setGround(v []cssToken) {
	var last *rgba
	for i := 0; i < len(v); i++ {
		c, n, ok := readColour(v, i)
		if ok && v[i].kind != cssNumber || ok && len(v) == 1 {
			last = &c
			i += n - 1
		}
	}
	switch {
	case last != nil:
		l.ground = last.over(l.ground)
		l.unknown = l.unknown && last.alpha < 1
	case slices.ContainsFunc(v, func(t cssToken) bool { return t.kind == cssURL || t.kind == cssFunction }):
		l.unknown = true
	}
}

// namedSizes are the named font sizes, in pixels.
var namedSizes = map[string]float64{
	"xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32, "xxx-large": 48,
}

func (l *look) setSize(t cssToken, parent float64) {
	switch t.kind {
	case cssIdent:
		word := strings.ToLower(t.text)
		if size := namedSizes[word]; size > 0 {
			l.size = size
		}
		switch word {
		case "smaller":
			l.size = parent * 0.83
		case "larger":
			l.size = parent * 1.2
		}
	case cssNumber:
		l.size = length(t, parent, parent/100)
	case cssFunction: // a computed value is unknown
		l.size = 0
	}
}

// most returns the length that is furthest from 0, in pixels.
func (l *look) most(v []cssToken) float64 {
	most := 0.0
	for _, t := range v {
		if t.kind != cssNumber {
			continue
		}
		if n := length(t, l.size, percentOfBox); math.Abs(n) > math.Abs(most) {
			most = n
		}
	}
	return most
}

// percentOfBox is how many pixels one percent of a box has, as 600 pixels are wide.
const percentOfBox = 6

// units are the sizes of absolute units, in pixels. A number without a unit counts as pixels,
// as it does in mail without a doctype. A window is taken to be 600 pixels wide and high.
var units = map[string]float64{
	"": 1, "px": 1, "pt": 4. / 3, "pc": 16, "rem": 16, "in": 96, "cm": 37.8, "mm": 3.78, "q": 3.78, "vw": 6, "vh": 6, "vmin": 6, "vmax": 6,
}

// length returns a length in pixels, with the sizes of its relative units. An unknown unit
// counts as pixels, and what is not a length as 0.
func length(t cssToken, em, percent float64) float64 {
	n, unit := measured(t)
	switch unit {
	case "em":
		return n * em
	case "ex", "ch":
		return n * em / 2
	case "%":
		return n * percent
	case "?":
		return 0
	}
	if size, known := units[unit]; known {
		return n * size
	}
	return n
}
