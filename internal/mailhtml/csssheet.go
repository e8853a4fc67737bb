package mailhtml

import "strings"

// maxMedia is how deep at-rules may be nested.
const maxMedia = 4

// styleSheet returns the allowed rules of a style sheet: those for elements, also inside of
// media queries.
func (c *cleaner) styleSheet(s string) string {
	s = strings.NewReplacer("<!--", " ", "-->", " ").Replace(s)
	var out strings.Builder
	c.rules(&cssTokens{s: s}, &out, 0)
	return out.String()
}

// rules reads to the end of a block or, at depth 0, of the input.
func (c *cleaner) rules(r *cssTokens, out *strings.Builder, depth int) {
	for {
		t := r.peek()
		switch {
		case t.kind == cssEnd:
			return
		case t.is("}"):
			if depth > 0 {
				return
			}
			r.next()
		case t.kind == cssSpace, t.is(";"):
			r.next()
		case t.kind == cssAt:
			c.atRule(r, out, depth)
		default:
			c.rule(r, out)
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

// atRule keeps @media and skips the others: they load remote content, or a message does not
// need them.
func (c *cleaner) atRule(r *cssTokens, out *strings.Builder, depth int) {
	tokens, block := prelude(r)
	if !strings.EqualFold(tokens[0].text, "media") || depth >= maxMedia || !block {
		c.countTokens(tokens)
		c.sending.remove("style @"+nameOf(tokens[0].text), "")
		if block {
			c.skipBlock(r)
		}
		return
	}
	query, ok := written(tokens[1:], mediaMarks)
	var inner strings.Builder
	c.rules(r, &inner, depth+1)
	r.next() // the bracket
	if !ok {
		c.sending.remove("style @media that cannot be read", "")
	}
	if ok && inner.Len() > 0 && !c.options.Reveal {
		out.WriteString("@media " + strings.TrimSpace(query) + "{" + inner.String() + "}\n")
	}
}

func (c *cleaner) rule(r *cssTokens, out *strings.Builder) {
	tokens, block := prelude(r)
	if !block {
		c.countTokens(tokens)
		return
	}
	body := c.declarations(r, subject(tokens))
	r.next() // the bracket
	selector, ok := written(tokens, selectorMarks)
	if ok = ok && !strings.Contains(selector, "postroom-"); !ok {
		c.sending.remove("style rule with a selector that is not allowed", "")
	}
	if ok && body != "" {
		out.WriteString(strings.TrimSpace(selector) + "{" + body + "}\n")
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
func (c *cleaner) skipBlock(r *cssTokens) {
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
		c.countTokens([]cssToken{t})
	}
}

// What selectors and media queries may contain, besides names and numbers.
const (
	selectorMarks = ".,>+~*[]=:^$|"
	mediaMarks    = ":,()/"
)

// pseudo are the allowed states in selectors. They do not include pseudo-elements, which add
// boxes of their own.
var pseudo = setOf(`active first-child focus hover last-child link nth-child only-child visited root`)

// written rewrites a selector or media query. It returns false if it is not allowed.
func written(tokens []cssToken, marks string) (string, bool) {
	var out strings.Builder
	var open brackets
	for i, t := range tokens {
		if !open.take(t) {
			return "", false
		}
		if t.kind == cssSpace && i > 0 && tokens[i-1].kind == cssSpace {
			continue
		}
		switch t.kind {
		case cssIdent:
			if marks == selectorMarks && i > 0 && tokens[i-1].is(":") && !pseudo[strings.ToLower(t.text)] {
				return "", false
			}
			out.WriteString(t.text)
		case cssNumber, cssSpace:
			out.WriteString(t.text)
		case cssHash:
			out.WriteString("#" + t.text)
		case cssString:
			if !plainString.MatchString(t.text) {
				return "", false
			}
			out.WriteString(`"` + t.text + `"`)
		case cssMark:
			if !strings.Contains(marks, t.text) {
				return "", false
			}
			out.WriteString(t.text)
		default: // including functions
			return "", false
		}
	}
	s := out.String()
	return s, strings.TrimSpace(s) != "" && len(open) == 0
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
