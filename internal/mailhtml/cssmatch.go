package mailhtml

import (
	"cmp"
	"slices"
	"strings"
)

// cssRule is a rule of a style sheet with one of its selectors.
type cssRule struct {
	parts []compound // parts of the selector, the last one first
	// sometimes means that the rule holds for some readers only: it is in a media
	// query, or requires something that is not checked here.
	sometimes bool
	weight    int // specificity, then order
	set       []declaredStyle
}

// compound is the part of a selector that matches one element.
type compound struct {
	tag, id string
	classes []string
	child   bool // the previous element of the selector is its parent
}

type declaredStyle struct {
	name      string
	value     []cssToken
	important bool
}

// ruleIndex finds the rules that may match an element, by what the last part of their
// selectors requires.
type ruleIndex struct {
	rules []cssRule
	by    map[string][]int // "#id", ".class", "tag" or "*"
	work  int              // remaining comparisons
}

// maxMatching is the maximum number of comparisons for the rules of one message.
const maxMatching = 3_000_000

// indexRules parses a cleaned style sheet.
func indexRules(sheet string) *ruleIndex {
	x := &ruleIndex{by: map[string][]int{}, work: maxMatching}
	readSheet(&cssTokens{s: sheet}, x, 0)
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

func (x *ruleIndex) at(_ []cssToken, block bool, depth int) bool { return block && depth < maxMedia }

func (x *ruleIndex) end([]cssToken) {}

func (x *ruleIndex) rule(selector []cssToken, r *cssTokens, depth int) {
	set := declarations(r)
	for part := range splitTokens(selector, ",") {
		x.add(part, set, depth > 0)
	}
}

func splitTokens(tokens []cssToken, mark string) func(func([]cssToken) bool) {
	return func(yield func([]cssToken) bool) {
		for {
			i := slices.IndexFunc(tokens, func(t cssToken) bool { return t.is(mark) })
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

// declarations reads to the end of a block.
func declarations(r *cssTokens) []declaredStyle {
	var out []declaredStyle
	eachDeclaration(r, func(name string, value []cssToken) {
		d := declaredStyle{name: name}
		for _, v := range value {
			if v.is("!") {
				d.important = true
				break
			}
			if v.kind != cssSpace || len(d.value) > 0 {
				d.value = append(d.value, v)
			}
		}
		for len(d.value) > 0 && d.value[len(d.value)-1].kind == cssSpace {
			d.value = d.value[:len(d.value)-1]
		}
		if name != "" && len(d.value) > 0 {
			out = append(out, d)
		}
	})
	return out
}

// whileUsed are the states that an element has only for a moment.
var whileUsed = setOf(`active focus hover visited`)

func (x *ruleIndex) add(selector []cssToken, set []declaredStyle, media bool) {
	rule := cssRule{sometimes: media, set: set}
	now := compound{}
	asked, started, gap := 0, false, false
	flush := func() {
		if started {
			rule.parts = append(rule.parts, now)
		}
		now, started, gap = compound{}, false, false
	}
	for i := 0; i < len(selector); i++ {
		t := selector[i]
		if gap && !t.is(">") && !t.is("+") && !t.is("~") && t.kind != cssSpace {
			flush()
		}
		next := cssToken{}
		if i+1 < len(selector) {
			next = selector[i+1]
		}
		switch {
		case t.kind == cssSpace:
			gap = started
		case t.is(">"):
			flush()
			now.child = true
		case t.is("+"), t.is("~"):
			// The siblings of an element are not checked: the rest of the selector may match.
			flush()
			rule.parts, rule.sometimes = nil, true
		case t.is("*"):
			started = true
		case t.is("."):
			now.classes, started, i = append(now.classes, strings.ToLower(next.text)), true, i+1
			asked += 100
		case t.kind == cssHash:
			now.id, started = strings.ToLower(t.text), true
			asked += 10_000
		case t.is(":"):
			if whileUsed[strings.ToLower(next.text)] {
				return
			}
			if i++; !strings.EqualFold(next.text, "link") && !strings.EqualFold(next.text, "root") {
				rule.sometimes = true
			}
			started, asked = true, asked+100
		case t.is("["):
			for i < len(selector) && !selector[i].is("]") {
				i++
			}
			rule.sometimes, started, asked = true, true, asked+100
		case t.kind == cssIdent:
			now.tag, started = strings.ToLower(t.text), true
			asked++
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

// matched is a style that a rule sets.
type matched struct {
	declaredStyle
	sometimes bool
	weight    int
}

// of returns the styles of the innermost open element, the strongest last. It returns false if
// that takes too much work.
func (x *ruleIndex) of(open []*look) ([]matched, bool) {
	e := open[len(open)-1]
	keys := []string{"*", e.tag}
	if e.id != "" {
		keys = append(keys, "#"+e.id)
	}
	for _, c := range e.classes {
		keys = append(keys, "."+c)
	}
	var out []matched
	for _, key := range keys {
		for _, i := range x.by[key] {
			r := &x.rules[i]
			hit, sure := x.matches(r, open)
			if x.work < 0 {
				return nil, false
			}
			if !hit {
				continue
			}
			if x.work -= len(r.set); x.work < 0 {
				return nil, false
			}
			for _, d := range r.set {
				out = append(out, matched{d, r.sometimes || !sure, r.weight})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b matched) int {
		if a.important != b.important {
			if a.important {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.weight, b.weight)
	})
	return out, true
}

// matches reports whether a rule applies to the innermost open element. A selector with both
// child and descendant steps may match in another way than through the nearest elements; such
// a rule counts as an uncertain match.
func (x *ruleIndex) matches(r *cssRule, open []*look) (hit, sure bool) {
	at := len(open) - 1
	if x.work--; !r.parts[0].is(open[at]) {
		return false, true
	}
	choice, uncertain := false, false
	for i := 1; i < len(r.parts); i++ {
		child := r.parts[i-1].child
		uncertain = uncertain || child && choice
		choice = choice || !child
		for at--; ; at-- {
			if at < 0 {
				return uncertain, false
			}
			if x.work -= 1 + len(r.parts[i].classes)*len(open[at].classes)/8; x.work < 0 {
				return false, false
			}
			if r.parts[i].is(open[at]) {
				break
			}
			if child {
				return uncertain, false
			}
		}
	}
	return true, true
}

// is reports whether a part of a selector matches an element. Classes and ids are compared
// without regard to case, as in HTML without a doctype.
func (p compound) is(e *look) bool {
	if p.tag != "" && p.tag != e.tag || p.id != "" && p.id != e.id {
		return false
	}
	for _, c := range p.classes {
		if !slices.Contains(e.classes, c) {
			return false
		}
	}
	return true
}
