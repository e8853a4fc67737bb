package css

import (
	"math"
	"slices"
	"strings"
)

// relevantNames are the properties that decide whether text is seen.
var relevantNames = setOf(`display visibility content-visibility opacity color background background-color background-image font-size font
	line-height letter-spacing word-spacing text-indent margin margin-left margin-top margin-right margin-bottom padding padding-left padding-top
	overflow overflow-x overflow-y height max-height width max-width block-size inline-size max-block-size max-inline-size position left top right bottom inset z-index
	clip clip-path -webkit-clip-path transform -webkit-transform scale translate rotate zoom filter -webkit-filter mask mask-image -webkit-mask -webkit-mask-image
	-webkit-text-fill-color mix-blend-mode backdrop-filter float all`)

// keywords are the words that some properties take, beside everyKeyword. A browser ignores a
// declaration with another word, so that an earlier one stays.
var keywords = map[string]map[string]bool{
	"display": setOf(`none block inline inline-block flex inline-flex grid inline-grid flow flow-root contents list-item run-in
		table inline-table table-row-group table-header-group table-footer-group table-row table-cell table-column-group table-column table-caption
		ruby ruby-base ruby-text ruby-base-container ruby-text-container math -webkit-box -webkit-inline-box -webkit-flex -webkit-inline-flex`),
	"visibility":         setOf(`visible hidden collapse`),
	"content-visibility": setOf(`visible hidden auto`),
	"overflow":           overflows, "overflow-x": overflows, "overflow-y": overflows,
	"position": setOf(`static relative absolute fixed sticky -webkit-sticky`),
	"height":   sizeWords, "max-height": sizeWords, "width": sizeWords, "max-width": sizeWords,
	"block-size": sizeWords, "max-block-size": sizeWords, "inline-size": sizeWords, "max-inline-size": sizeWords,
	"left": setOf(`auto`), "top": setOf(`auto`), "right": setOf(`auto`), "bottom": setOf(`auto`), "inset": setOf(`auto`),
	"margin": setOf(`auto`), "margin-left": setOf(`auto`), "margin-top": setOf(`auto`), "padding": {}, "padding-left": {}, "padding-top": {},
	"text-indent": setOf(`hanging each-line`), "letter-spacing": setOf(`normal`), "word-spacing": setOf(`normal`), "line-height": setOf(`normal`),
}

var (
	overflows = setOf(`visible hidden clip scroll auto overlay`)
	sizeWords = setOf(`auto none min-content max-content fit-content stretch
		-webkit-fill-available -webkit-min-content -webkit-max-content -webkit-fit-content`)
	everyKeyword = setOf(`inherit initial unset revert revert-layer`)
)

// valid reports whether a browser knows the words of a value.
func valid(name string, v []Token) bool {
	known, listed := keywords[name]
	return !listed || !slices.ContainsFunc(v, func(t Token) bool {
		word := strings.ToLower(t.Text)
		return t.Kind == Ident && !known[word] && !everyKeyword[word]
	})
}

func relevant(name string) bool {
	return relevantNames[name] || strings.HasPrefix(name, "--") || isAnimation(name)
}

// set sets one style of an element inside of parent.
func (l *look) set(d declaredStyle, parent *look, x *ruleIndex) {
	v := l.resolved(d.value, 8, x)
	if isAnimation(d.name) {
		l.animate(d, v)
		return
	}
	if len(v) == 0 || !valid(d.name, v) {
		return
	}
	switch d.name {
	case "display":
		word := strings.ToLower(v[0].Text)
		if word == "inherit" || v[0].Kind != Ident {
			return
		}
		l.none = word == "none" || strings.HasPrefix(word, "table-column")
		l.inline = word == "inline" || word == "contents"
	case "float":
		l.inline = l.inline && !OneOf(v, "left", "right")
	case "visibility":
		if !OneOf(v, "inherit") {
			l.unseen = OneOf(v, "hidden", "collapse")
		}
	case "content-visibility":
		l.covered = why(OneOf(v, "hidden"), byDisplay)
	case "opacity":
		l.opacity = portion(v[0], l.opacity)
	case "color":
		l.setLetters(v, parent)
	case "-webkit-text-fill-color":
		if c, _, ok := readColour(v, 0); ok {
			l.fill = &c
		}
	case "background", "background-color", "background-image":
		l.setGround(d.name, v)
	case "font-size":
		l.setSize(v, parent.size)
	case "font":
		for i, t := range v {
			if t.Kind == Number && (i == 0 || !v[i-1].Is("/")) || t.Kind == Ident && namedSizes[strings.ToLower(t.Text)] > 0 {
				if _, unit := Measured(t); unit != "" || t.Text == "0" || t.Kind == Ident { // not a weight
					l.setSize(v[i:], parent.size)
				}
			}
		}
	case "line-height":
		n, unit := Measured(v[0])
		l.line = v[0].Kind == Number && (unit == "" && n < 0.2 || unit == "%" && n < 20)
	case "letter-spacing", "word-spacing":
		l.spacing = l.most(v)
	case "text-indent":
		if l.indent = l.most(v); slices.ContainsFunc(v, func(t Token) bool { n, unit := Measured(t); return unit == "%" && n >= 100 }) {
			l.indent *= 10 // out of its box
		}
	case "margin-left", "margin-top", "padding-left", "padding-top", "left", "top", "right", "bottom":
		l.move[moveNames[d.name]] = l.most(v)
	case "margin", "padding", "inset":
		l.setSides(d.name, v)
	case "overflow", "overflow-x", "overflow-y":
		l.cuts = OneOf(v, "hidden", "clip", "scroll", "auto")
	case "height", "max-height", "width", "max-width", "block-size", "inline-size", "max-block-size", "max-inline-size":
		i := boxNames[d.name]
		if l.box[i] = -1; v[0].Kind == Number {
			l.box[i] = max(0, length(v[0], l.size, percentOfBox))
		} else if v[0].Kind == Function {
			if n, ok := l.computed(v, percentOfBox); ok {
				l.box[i] = max(0, n)
			}
		}
	case "position":
		if l.position = strings.ToLower(v[0].Text); l.position == "static" {
			l.position = ""
		}
	case "z-index":
		l.behind = v[0].Kind == Number && strings.HasPrefix(v[0].Text, "-")
	default:
		l.setEffect(d.name, v)
	}
}

// why returns the reason if a condition is met.
func why(met bool, reason string) string {
	if met {
		return reason
	}
	return ""
}

var (
	moveNames = map[string]int{"left": left, "top": top, "right": right, "bottom": bottom,
		"margin-left": marginLeft, "margin-top": marginTop, "padding-left": paddingLeft, "padding-top": paddingTop}
	boxNames = map[string]int{"height": height, "max-height": maxHeight, "width": width, "max-width": maxWidth,
		"block-size": height, "max-block-size": maxHeight, "inline-size": width, "max-inline-size": maxWidth}
)

// portion returns a number or percentage as a part of 1.
func portion(t Token, otherwise float64) float64 {
	switch n, unit := Measured(t); unit {
	case "%":
		return n / 100
	case "":
		return n
	}
	return otherwise
}

// setSides sets the margins, paddings or offsets of the four sides.
func (l *look) setSides(name string, v []Token) {
	var sides []float64
	for _, t := range v {
		if t.Kind == Number {
			sides = append(sides, length(t, l.size, percentOfBox))
		} else if t.Kind == Ident {
			sides = append(sides, 0)
		}
	}
	if len(sides) == 0 {
		return
	}
	sides = sides[:min(len(sides), 4)]
	at := func(i int) float64 { // 0 top, 1 right, 2 bottom, 3 left
		for i >= len(sides) {
			i = max(0, i-2)
		}
		return sides[i]
	}
	switch name {
	case "margin":
		l.move[marginTop], l.move[marginLeft] = at(0), at(3)
	case "padding":
		l.move[paddingTop], l.move[paddingLeft] = at(0), at(3)
	default:
		l.move[top], l.move[right], l.move[bottom], l.move[left] = at(0), at(1), at(2), at(3)
	}
}

// setEffect sets a style that clips, moves, shrinks or covers the element.
func (l *look) setEffect(name string, v []Token) {
	name = strings.TrimPrefix(name, "-webkit-")
	if OneOf(v, "none", "normal", "initial", "unset") {
		switch name {
		case "transform", "scale", "translate", "zoom":
			l.scale, l.move[moveX], l.move[moveY] = 1, 0, 0
		case "clip-path", "filter", "mask", "mask-image", "mix-blend-mode":
			l.covered = ""
		}
		return
	}
	switch name {
	case "zoom":
		l.scale = portion(v[0], 1)
	case "scale":
		l.scale = l.least(v)
	case "translate":
		ns := l.lengths(v)
		l.move[moveX], l.move[moveY] = at(ns, 0), at(ns, 1)
	case "rotate":
		l.covered = why(OneOf(v, "x", "y") && edgeOn(v), byPosition)
	case "clip":
		ns := l.lengths(v)
		l.clip = v[0].Kind == Function && (len(ns) < 4 || at(ns, 2)-at(ns, 0) <= smallestSize || at(ns, 1)-at(ns, 3) <= smallestSize)
	case "mask", "mask-image":
		l.covered = why(v[0].Kind == Function && strings.HasSuffix(v[0].Text, "gradient") && !slices.ContainsFunc(v, opaque), byOpacity)
	case "mix-blend-mode":
		l.covered = why(OneOf(v, "screen", "lighten", "color-dodge", "plus-lighter") && l.coloured && luminance(l.letters) < 0.2 && luminance(l.ground) > 0.8, byColour)
	case "transform", "filter", "clip-path":
		for i, t := range v {
			if t.Kind == Function {
				end := i + 1
				for end < min(len(v), i+maxResolved) && !v[end].Is(")") {
					end++
				}
				l.setFunction(t.Text, v[i+1:end])
			}
		}
	}
}

// opaque reports whether a token in a gradient names a colour that is not transparent.
func opaque(t Token) bool {
	c, _, ok := readColour([]Token{t}, 0)
	return ok && t.Kind != Number && c.alpha > lowestOpacity
}

// setFunction sets the effect of one function of a transformation, filter or path.
func (l *look) setFunction(name string, v []Token) {
	ns := l.lengths(v)
	switch name {
	case "scale", "scale3d", "scalex", "scaley":
		l.scale *= l.least(v)
	case "matrix":
		l.scale *= min(math.Abs(at(ns, 0))+math.Abs(at(ns, 1)), math.Abs(at(ns, 2))+math.Abs(at(ns, 3)))
		l.move[moveX], l.move[moveY] = at(ns, 4), at(ns, 5)
	case "translate", "translate3d":
		l.move[moveX], l.move[moveY] = at(ns, 0), at(ns, 1)
	case "translatex":
		l.move[moveX] = at(ns, 0)
	case "translatey":
		l.move[moveY] = at(ns, 0)
	case "rotatex", "rotatey":
		l.covered = why(edgeOn(v), byPosition)
	case "opacity":
		if len(v) > 0 && portion(v[0], 1) < lowestOpacity {
			l.covered = byOpacity
		}
	case "contrast":
		if len(v) > 0 && portion(v[0], 1) < lowestOpacity {
			l.covered = byColour
		}
	case "blur":
		if at(ns, 0) >= 8 {
			l.covered = byOpacity
		}
	case "inset", "circle", "ellipse", "polygon", "rect", "xywh":
		l.covered = why(clipsAll(name, v, ns), byClipping)
	}
}

// clipsAll reports whether a shape has no room for text.
func clipsAll(name string, v []Token, ns []float64) bool {
	switch name {
	case "inset":
		return slices.ContainsFunc(v, func(t Token) bool {
			n, unit := Measured(t)
			return unit == "%" && n >= 50 || unit != "%" && t.Kind == Number && n >= 500
		})
	case "circle", "ellipse":
		return len(ns) > 0 && ns[0] <= smallestSize
	case "polygon":
		for i := range ns {
			if math.Abs(ns[i]-ns[i%2]) > smallestSize {
				return false
			}
		}
		return len(ns) > 1
	case "rect":
		return len(ns) == 4 && (ns[2]-ns[0] <= smallestSize || ns[1]-ns[3] <= smallestSize)
	}
	return len(ns) == 4 && (ns[2] <= smallestSize || ns[3] <= smallestSize)
}

// edgeOn reports whether a rotation shows an element from its edge.
func edgeOn(v []Token) bool {
	for _, t := range v {
		n, unit := Measured(t)
		switch unit {
		case "turn":
			n *= 360
		case "rad":
			n *= 180 / math.Pi
		case "grad":
			n *= 0.9
		case "deg":
		default:
			continue
		}
		if math.Abs(math.Cos(n*math.Pi/180)) < 0.05 {
			return true
		}
	}
	return false
}

// lengths returns the lengths in a value, in pixels.
func (l *look) lengths(v []Token) (ns []float64) {
	for _, t := range v {
		if t.Kind == Number {
			ns = append(ns, length(t, l.size, percentOfBox))
		}
	}
	return ns
}

func at(ns []float64, i int) float64 {
	if i < len(ns) {
		return ns[i]
	}
	return 0
}

// least returns the number that is next to 0, or 1.
func (l *look) least(v []Token) float64 {
	least := math.Inf(1)
	for _, t := range v {
		if t.Kind == Number {
			least = min(least, math.Abs(portion(t, 1)))
		}
	}
	if math.IsInf(least, 1) {
		return 1
	}
	return least
}

func (l *look) setLetters(v []Token, parent *look) {
	if len(v) == 0 {
		return
	}
	if OneOf(v, "inherit", "unset", "currentcolor") {
		l.letters = parent.letters
	} else if c, _, ok := readColour(v, 0); ok {
		l.letters = c
	}
}

// setGround sets the colour of the background, its image, or both. An image may have any colour,
// and covers the one of the background; so does a gradient between different colours.
func (l *look) setGround(name string, v []Token) {
	var last *rgba
	gradient, mixed := false, false
	for i := 0; i < len(v); i++ {
		if v[i].Kind == Function && strings.HasSuffix(v[i].Text, "gradient") {
			gradient = true
			continue
		}
		c, n, ok := readColour(v, i)
		if ok && v[i].Kind != Number || ok && len(v) == 1 {
			mixed = mixed || gradient && last != nil && contrast(last.over(white), c.over(white)) > lowestContrast
			last = &c
		}
		i += max(n, 1) - 1
	}
	computed := last == nil && slices.ContainsFunc(v, func(t Token) bool { return t.Kind == Function })
	if name != "background-color" || computed {
		l.image = mixed || computed || slices.ContainsFunc(v, func(t Token) bool {
			return t.Kind == URL || t.Kind == Function && strings.HasSuffix(t.Text, "image-set")
		})
	}
	if last != nil && !mixed {
		l.ground, l.clear = last.over(l.ground), last.alpha < 1
		l.filled = last.alpha > lowestOpacity
		l.coloured = l.coloured || last.alpha > lowestOpacity && l.tag != "body" && l.tag != "html"
	}
}

// namedSizes are the named font sizes, in pixels.
var namedSizes = map[string]float64{
	"xx-small": 9, "x-small": 10, "small": 13, "medium": 16, "large": 18, "x-large": 24, "xx-large": 32, "xxx-large": 48,
}

// setSize sets the font size to the first token of a value, or to what its function returns.
func (l *look) setSize(v []Token, parent float64) {
	switch t := v[0]; t.Kind {
	case Ident:
		word := strings.ToLower(t.Text)
		if size := namedSizes[word]; size > 0 {
			l.size = size
		}
		switch word {
		case "smaller":
			l.size = parent * 0.83
		case "larger":
			l.size = parent * 1.2
		case "inherit":
			l.size = parent
		}
	case Number:
		l.size = length(t, parent, parent/100)
	case Function:
		if n, ok := l.computed(v, parent/100); ok {
			l.size = n
		}
	}
}

// computed returns the value of calc(), min(), max() or clamp() without functions inside, in
// pixels.
func (l *look) computed(v []Token, percent float64) (float64, bool) {
	var parts []float64 // the operands, or the value of each argument
	sum, term, op := 0.0, math.NaN(), "+"
	add := func() {
		if !math.IsNaN(term) {
			parts, sum, term, op = append(parts, sum+term), 0, math.NaN(), "+"
		}
	}
	for _, t := range v[1:] {
		switch {
		case t.Kind == Number:
			n := length(t, l.size, percent)
			switch {
			case math.IsNaN(term) && op == "-":
				term = -n
			case math.IsNaN(term):
				term = n
			case op == "*":
				term *= n
			case op == "/" && n != 0:
				term /= n
			default: // a signed number: "1px -1px"
				sum, term = sum+term, n
			}
		case t.Is("+"), t.Is("-"):
			if !math.IsNaN(term) {
				sum, term = sum+term, math.NaN()
			}
			op = t.Text
		case t.Is("*"), t.Is("/"):
			op = t.Text
		case t.Is(","), t.Is(")"):
			add()
		case t.Kind == Function:
			return 0, false
		}
	}
	if add(); len(parts) == 0 {
		return 0, false
	}
	switch v[0].Text {
	case "calc":
		return parts[0], true
	case "min":
		return slices.Min(parts), true
	case "max":
		return slices.Max(parts), true
	case "clamp":
		if len(parts) == 3 {
			return max(parts[0], min(parts[1], parts[2])), true
		}
	}
	return 0, false
}

// most returns the length that is furthest from 0, in pixels.
func (l *look) most(v []Token) float64 { return most(v, l.size) }

// Most returns the length of a value that is furthest from 0, in pixels.
func Most(v []Token) float64 { return most(v, 16) }

func most(v []Token, em float64) float64 {
	most := 0.0
	for _, t := range v {
		if t.Kind != Number {
			continue
		}
		if n := length(t, em, percentOfBox); math.Abs(n) > math.Abs(most) {
			most = n
		}
	}
	return most
}

func setOf(names string) map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		m[name] = true
	}
	return m
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
func length(t Token, em, percent float64) float64 {
	n, unit := Measured(t)
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
