package css

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// cssRule is a rule of a style sheet with one of its selectors.
type cssRule struct {
	parts []compound // parts of the selector, the last one first
	// sometimes means that the rule holds for some readers only: it is in a media
	// query, or requires something that is not checked here.
	sometimes bool
	weight    int // specificity, then order
	set       []declaredStyle
	cost      int // of applying the set
}

// compound is the part of a selector that matches one element.
type compound struct {
	tag, id string
	classes []string
	attrs   []attrTest
	first   bool // it is the first element in its parent
	rel     byte // how it relates to the element of the part before it: ' ', '>', '+' or '~'
	cost    int  // of comparing its names
}

// attrTest is a condition on an attribute: its name, and "" or an operator with a value.
type attrTest struct{ key, op, value string }

type declaredStyle struct {
	name      string
	value     []Token
	important bool
}

// ruleIndex finds the rules that may match an element, by what the last part of their
// selectors requires.
type ruleIndex struct {
	rules []cssRule
	by    map[string][]int // "#id", ".class", "tag" or "*"
	work  int              // that remains, in comparisons
	// partial means that something was too long or too deep to be read.
	partial bool
	frames  map[string]*animation // by the at-rule and the name
	frame   *animation            // whose frames are being read
	// strict means that a rule counts that holds for some readers only.
	strict   bool
	siblings bool // a selector asks for siblings
	attrs    bool // a selector asks for attributes
}

// maxMatching is the maximum work for the styles of one message, in comparisons.
const maxMatching = 3_000_000

// bytesOfWork is how many bytes of text are as much work as one comparison.
const bytesOfWork = 64

func size(texts []string) (n int) {
	for _, s := range texts {
		n += len(s)
	}
	return n
}

// costOf returns the work of applying styles.
func costOf(set []declaredStyle) int {
	n := len(set)
	for i := range set {
		n += len(set[i].value)
	}
	return n
}

// indexRules parses a style sheet. A strict index keeps the rules that hold for some readers
// only; another one has the rules that hold in a window on a screen.
func indexRules(sheet string, strict bool) *ruleIndex {
	x := &ruleIndex{by: map[string][]int{}, work: maxMatching, strict: strict, frames: map[string]*animation{}}
	ReadSheet(&Tokens{s: unescape(sheet)}, x, 0)
	for i, r := range x.rules {
		last, key := r.parts[0], "*"
		switch {
		case last.id != "":
			key = "#" + last.id
		case len(last.classes) > 0:
			key = "." + last.classes[0]
		case last.tag != "":
			key = last.tag
		}
		x.by[key] = append(x.by[key], i)
	}
	return x
}

// At implements [SheetReader].
func (x *ruleIndex) At(tokens []Token, block bool, depth int) bool {
	if !block || x.frame != nil || !x.strict && !holds(tokens) {
		return false
	}
	if depth >= MaxMedia {
		x.partial = true
		return false
	}
	if at := strings.ToLower(tokens[0].Text); strings.HasSuffix(at, keyframes) {
		return x.beginFrames(at, tokens[1:], depth)
	}
	return true
}

// End implements [SheetReader].
func (x *ruleIndex) End([]Token) { x.frame = nil }

// Rule implements [SheetReader].
func (x *ruleIndex) Rule(selector []Token, r *Tokens, depth int) {
	set := relevantIn(r)
	if x.frame != nil {
		x.addFrame(selector, set)
		return
	}
	if len(set) == 0 {
		return
	}
	cost := costOf(set)
	for part := range splitTokens(selector, ",") {
		x.add(part, set, cost, x.strict && depth > 0)
	}
}

func splitTokens(tokens []Token, mark string) func(func([]Token) bool) {
	return func(yield func([]Token) bool) {
		for {
			i := slices.IndexFunc(tokens, func(t Token) bool { return t.Is(mark) })
			if i < 0 {
				yield(tokens)
				return
			}
			if !yield(tokens[:i]) {
				return
			}
			tokens = tokens[i+1:]
		}
	}
}

// relevantIn reads to the end of a block, and returns the declarations that decide whether text
// is seen.
func relevantIn(r *Tokens) []declaredStyle {
	var out []declaredStyle
	EachDeclaration(r, func(name string, value []Token) {
		if !relevant(name) {
			return
		}
		d := declaredStyle{name: name}
		for _, v := range value {
			if v.Is("!") {
				d.important = true
				break
			}
			if v.Kind != Space || len(d.value) > 0 {
				d.value = append(d.value, v)
			}
		}
		for len(d.value) > 0 && d.value[len(d.value)-1].Kind == Space {
			d.value = d.value[:len(d.value)-1]
		}
		if len(d.value) > 0 {
			out = append(out, d)
		}
	})
	return out
}

// whileUsed are the states that an element has only for a moment, or never in a message.
var whileUsed = setOf(`active checked disabled focus focus-visible focus-within fullscreen hover target visited`)

func (x *ruleIndex) add(selector []Token, set []declaredStyle, cost int, media bool) {
	rule := cssRule{sometimes: media, set: set, cost: cost}
	now := compound{rel: ' '}
	asked, started, gap := 0, false, false
	flush := func() {
		if started {
			now.cost = 1 + (len(now.tag)+len(now.id)+size(now.classes))/bytesOfWork
			rule.parts = append(rule.parts, now)
		}
		now, started, gap = compound{rel: ' '}, false, false
	}
	for i := 0; i < len(selector); i++ {
		t := selector[i]
		if gap && !t.Is(">") && !t.Is("+") && !t.Is("~") && t.Kind != Space {
			flush()
		}
		next := Token{}
		if i+1 < len(selector) {
			next = selector[i+1]
		}
		switch {
		case t.Kind == Space:
			gap = started
		case t.Is(">"):
			flush()
			now.rel = '>'
		case t.Is("+"), t.Is("~"):
			flush()
			if now.rel = t.Text[0]; x.strict { // the rest of the selector may match
				rule.parts, rule.sometimes = nil, true
			}
			x.siblings = true
		case t.Is("*"):
			started = true
		case t.Is("."):
			now.classes, started, i = append(now.classes, strings.ToLower(next.Text)), true, i+1
			asked += 100
		case t.Kind == Hash:
			now.id, started = strings.ToLower(t.Text), true
			asked += 10_000
		case t.Is(":"):
			state := strings.ToLower(next.Text)
			if whileUsed[state] || !x.strict && (next.Is(":") || strings.HasPrefix(state, "-") || state == "before" || state == "after") {
				return
			}
			switch i++; {
			case state == "first-child" && !x.strict:
				now.first, x.siblings = true, true
			case state != "link" && state != "root" && state != "any-link":
				rule.sometimes = true
			}
			if next.Kind == Function {
				for open := (Brackets{')'}); len(open) > 0 && i+1 < len(selector); {
					i++
					open.Take(selector[i])
				}
			}
			started, asked = true, asked+100
		case t.Is("["):
			from := i + 1
			for i < len(selector) && !selector[i].Is("]") {
				i++
			}
			if x.strict {
				rule.sometimes = true
			} else {
				now.attrs, x.attrs = append(now.attrs, readAttrTest(selector[from:min(i, len(selector))])), true
			}
			started, asked = true, asked+100
		case t.Kind == Ident:
			now.tag, started = strings.ToLower(t.Text), true
			asked++
		case t.Kind == Bad, t.Kind == Number, t.Kind == Function, t.Kind == At, t.Is("&"):
			return // a selector that browsers do not accept either
		}
	}
	flush()
	if len(rule.parts) == 0 {
		return
	}
	slices.Reverse(rule.parts)
	rule.weight = min(asked, 1_000_000)<<32 + len(x.rules)
	x.rules = append(x.rules, rule)
}

func readAttrTest(tokens []Token) (a attrTest) {
	for _, t := range tokens {
		switch {
		case t.Kind == Mark:
			a.op += t.Text
		case t.Kind != Ident && t.Kind != String && t.Kind != Number && t.Kind != Hash:
		case a.op == "":
			a.key += strings.ToLower(t.Text)
		case a.value == "":
			a.value = strings.ToLower(t.Text)
		}
	}
	return a
}

// is reports whether attributes meet the condition, without regard to case.
func (a attrTest) is(attrs []html.Attribute) bool {
	i := slices.IndexFunc(attrs, func(at html.Attribute) bool { return at.Key == a.key })
	if i < 0 {
		return false
	}
	have, want := strings.ToLower(attrs[i].Val), a.value
	switch a.op {
	case "":
		return true
	case "=":
		return have == want
	case "~=":
		return slices.Contains(strings.Fields(have), want)
	case "|=":
		return have == want || strings.HasPrefix(have, want+"-")
	case "^=":
		return want != "" && strings.HasPrefix(have, want)
	case "$=":
		return want != "" && strings.HasSuffix(have, want)
	case "*=":
		return want != "" && strings.Contains(have, want)
	}
	return false
}

// matched is a style that a rule sets.
type matched struct {
	declaredStyle
	sometimes bool
	weight    int
}

// of returns the styles of the innermost open element, the strongest last. It returns false if
// that takes too much work.
func (x *ruleIndex) of(open []look) ([]matched, bool) {
	e := &open[len(open)-1]
	var out []matched
	ok := x.under("*", open, &out) && x.under(e.tag, open, &out)
	if e.id != "" {
		ok = ok && x.under("#"+e.id, open, &out)
	}
	for _, c := range e.classes {
		ok = ok && x.under("."+c, open, &out)
	}
	if len(out) > 1 {
		slices.SortStableFunc(out, func(a, b matched) int {
			if a.important != b.important {
				if a.important {
					return 1
				}
				return -1
			}
			return cmp.Compare(a.weight, b.weight)
		})
	}
	return out, ok
}

// under adds the styles of the rules under a key that match the innermost open element.
func (x *ruleIndex) under(key string, open []look, out *[]matched) bool {
	for _, i := range x.by[key] {
		r := &x.rules[i]
		hit, sure := x.matches(r, open)
		if x.work < 0 {
			return false
		}
		if !hit {
			continue
		}
		if x.work -= r.cost; x.work < 0 {
			return false
		}
		for _, d := range r.set {
			*out = append(*out, matched{d, r.sometimes || !sure, r.weight})
		}
	}
	return true
}

// matches reports whether a rule applies to the innermost open element. A selector with both
// child and descendant steps may match in another way than through the nearest elements; such
// a rule counts as an uncertain match.
func (x *ruleIndex) matches(r *cssRule, open []look) (hit, sure bool) {
	at := len(open) - 1
	if !x.fits(&r.parts[0], &open[at].ident) {
		return false, true
	}
	// kid is the place of the current element among the children of its parent.
	kid := open[at].place
	choice, uncertain := false, false
	for i := 1; i < len(r.parts); i++ {
		rel, part := r.parts[i-1].rel, &r.parts[i]
		if rel == '+' || rel == '~' {
			before := open[max(at-1, 0)].before(kid)
			for kid = len(before) - 1; kid >= 0; kid-- {
				if x.fits(part, &before[kid]) {
					break
				}
				if x.work < 0 {
					return false, false
				}
				if rel == '+' {
					kid = -1
					break
				}
			}
			if kid < 0 {
				return uncertain, false
			}
			choice = choice || rel == '~'
			continue
		}
		child := rel == '>'
		uncertain = uncertain || child && choice
		choice = choice || !child
		for at--; ; at-- {
			if at < 0 {
				return uncertain, false
			}
			if x.fits(part, &open[at].ident) {
				break
			}
			if x.work < 0 {
				return false, false
			}
			if child {
				return uncertain, false
			}
		}
		kid = open[at].place
	}
	return true, true
}

// fits reports whether a part of a selector matches an element, and takes the work for it.
// Classes and ids are compared without regard to case, as in HTML without a doctype. Without
// work left, nothing matches.
func (x *ruleIndex) fits(p *compound, e *ident) bool {
	x.work -= p.cost
	if p.tag != "" && p.tag != e.tag || p.id != "" && p.id != e.id || p.first && e.place > 0 {
		return false
	}
	if x.work -= len(p.classes) + len(p.attrs)*e.cost; x.work < 0 {
		return false
	}
	for _, c := range p.classes {
		if _, has := slices.BinarySearch(e.classes, c); !has {
			return false
		}
	}
	for i := range p.attrs {
		if !p.attrs[i].is(e.attrs) {
			return false
		}
	}
	return true
}
