package mailhtml

import "strings"

// maxMedia is how deep at-rules may be nested.
const maxMedia = 4

// styleSheet returns the allowed rules of a style sheet: those for elements, also inside of
// media queries.
func (c *cleaner) styleSheet(s string) string {
	w := &sheetWriter{c, []*strings.Builder{{}}}
	readSheet(&cssTokens{s: strings.NewReplacer("<!--", " ", "-->", " ").Replace(s)}, w, 0)
	return w.open[0].String()
}

// sheetReader is told of the rules of a style sheet. at returns whether the rules in the block
// of an at-rule are read, and end is called after them. rule reads the block of a rule.
type sheetReader interface {
	at(prelude []cssToken, block bool, depth int) (inside bool)
	end(prelude []cssToken)
	rule(selector []cssToken, r *cssTokens, depth int)
}

// readSheet reads to the end of a block or, at depth 0, of the input.
func readSheet(r *cssTokens, to sheetReader, depth int) {
	for {
		t := r.peek()
		switch {
		case t.kind == cssEnd, t.is("}") && depth > 0:
			return
		case t.kind == cssSpace, t.is(";"), t.is("}"):
			r.next()
		case t.kind == cssAt:
			tokens, block := prelude(r)
			switch {
			case to.at(tokens, block, depth):
				readSheet(r, to, depth+1)
				r.next() // the bracket
				to.end(tokens)
			case block:
				skipBlock(r)
			}
		default:
			if tokens, block := prelude(r); block {
				to.rule(tokens, r, depth)
				r.next() // the bracket
			}
		}
	}
}

// eachDeclaration reads to the end of a block or of the input.
func eachDeclaration(r *cssTokens, do func(name string, value []cssToken)) {
	for {
		t := r.peek()
		switch {
		case t.kind == cssEnd, t.is("}"):
			return
		case t.kind == cssSpace, t.is(";"):
			r.next()
		default:
			do(declared(r))
		}
	}
}

// prelude reads to the block of a rule. It returns false if there is no block.
func prelude(r *cssTokens) ([]cssToken, bool) {
	var tokens []cssToken
	for {
		if t := r.peek(); t.kind == cssEnd || t.is("}") {
			return tokens, false
		}
		t := r.next()
		switch {
		case t.is("{"):
			return tokens, true
		case t.is(";") && len(tokens) > 0 && tokens[0].kind == cssAt:
			return tokens, false
		}
		tokens = append(tokens, t)
	}
}

// sheetWriter writes the allowed rules of a style sheet: to the last of the open blocks, of
// which the first is the sheet itself.
type sheetWriter struct {
	c    *cleaner
	open []*strings.Builder
}

// at keeps @media and skips the others: they load remote content, or a message does not
// need them.
func (w *sheetWriter) at(tokens []cssToken, block bool, depth int) bool {
	if !strings.EqualFold(tokens[0].text, "media") || depth >= maxMedia || !block {
		w.c.sending.remove("style @"+nameOf(tokens[0].text), "")
		return false
	}
	w.open = append(w.open, &strings.Builder{})
	return true
}

func (w *sheetWriter) end(tokens []cssToken) {
	inner := w.open[len(w.open)-1].String()
	w.open = w.open[:len(w.open)-1]
	query, ok := mediaForm.write(tokens[1:])
	if ok = ok && strings.TrimSpace(query) != ""; !ok {
		w.c.sending.remove("style @media that cannot be read", "")
	}
	if ok && inner != "" && !w.c.options.Reveal {
		w.add("@media " + strings.TrimSpace(query) + "{" + inner + "}\n")
	}
}

func (w *sheetWriter) add(s string) { w.open[len(w.open)-1].WriteString(s) }

func (w *sheetWriter) rule(tokens []cssToken, r *cssTokens, _ int) {
	body := w.c.declarations(r, subject(tokens))
	selector, ok := selectorForm.write(tokens)
	if ok = ok && strings.TrimSpace(selector) != "" && !strings.Contains(selector, "postroom-"); !ok {
		w.c.sending.remove("style rule with a selector that is not allowed", "")
	}
	if ok && body != "" {
		w.add(strings.TrimSpace(selector) + "{" + body + "}\n")
	}
}

// subject returns the name of the elements that a selector matches, or an empty string if it
// matches several or does not name them.
func subject(selector []cssToken) string {
	name := ""
	for i, t := range selector {
		switch {
		case t.is(","):
			return ""
		case t.kind == cssSpace, t.is(">"), t.is("+"), t.is("~"):
			if i < len(selector)-1 {
				name = ""
			}
		case t.kind == cssIdent && (i == 0 || !selector[i-1].is(".") && !selector[i-1].is(":") && !selector[i-1].is("[")):
			name = strings.ToLower(t.text)
		}
	}
	return name
}

// skipBlock skips a block and its content.
func skipBlock(r *cssTokens) {
	for depth := 1; depth > 0; {
		t := r.next()
		switch {
		case t.kind == cssEnd:
			return
		case t.is("{"):
			depth++
		case t.is("}"):
			depth--
		}
	}
}

// pseudo are the allowed states in selectors. They do not include pseudo-elements, which add
// boxes of their own.
var pseudo = setOf(`active first-child focus hover last-child link nth-child only-child visited root`)

// cssForm is how a part of a style sheet may be written.
type cssForm struct {
	marks     string          // besides names and numbers
	states    map[string]bool // nil: any name may follow a colon
	functions map[string]bool
	images    func(address string) string // what url() is written with, or empty; nil: no url()
}

var (
	selectorForm = cssForm{marks: ".,>+~*[]=:^$|", states: pseudo}
	mediaForm    = cssForm{marks: ":,()/"}
)

// maxNested is how deep brackets may be nested.
const maxNested = 8

// write rewrites a part of a style sheet. It returns false if it is not allowed.
func (f cssForm) write(tokens []cssToken) (string, bool) {
	var out strings.Builder
	var open brackets
	before := cssToken{}
	for _, t := range tokens {
		if !open.take(t) || len(open) > maxNested {
			return "", false
		}
		switch last := before; {
		case t.kind == cssSpace && last.kind == cssSpace:
			continue
		case t.kind == cssIdent && (f.states == nil || !last.is(":") || f.states[strings.ToLower(t.text)]), t.kind == cssNumber, t.kind == cssSpace:
			out.WriteString(t.text)
		case t.kind == cssHash:
			out.WriteString("#" + t.text)
		case t.kind == cssString && len(t.text) <= maxValue && plainString.MatchString(t.text):
			out.WriteString(`"` + t.text + `"`)
		case t.kind == cssURL && f.images != nil:
			if u := f.images(t.text); u != "" {
				out.WriteString(`url("` + cssEscape(u) + `")`)
			}
		case t.kind == cssFunction && f.functions[t.text]:
			out.WriteString(t.text + "(")
		case t.kind == cssMark && strings.Contains(f.marks, t.text):
			out.WriteString(t.text)
		default:
			return "", false
		}
		before = t
	}
	return out.String(), len(open) == 0
}

// brackets are the closing characters of the open brackets.
type brackets []byte

// take updates the open brackets with a token. It returns false if the token closes another
// bracket than the last open one.
func (b *brackets) take(t cssToken) bool {
	switch {
	case t.kind == cssFunction, t.is("("):
		*b = append(*b, ')')
	case t.is("["):
		*b = append(*b, ']')
	case t.is("{"):
		*b = append(*b, '}')
	case t.is(")"), t.is("]"), t.is("}"):
		last := len(*b) - 1
		if last < 0 || (*b)[last] != t.text[0] {
			return false
		}
		*b = (*b)[:last]
	}
	return true
}
