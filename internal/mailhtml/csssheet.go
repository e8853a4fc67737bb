package mailhtml

import "strings"

// maxMedia is how many at-rules may stand in each other.
const maxMedia = 4

// styleSheet returns the rules of a style sheet that may stay: those for
// elements, and those of them that hold for some media.
func (c *cleaner) styleSheet(s string) string {
	s = strings.NewReplacer("<!--", " ", "-->", " ").Replace(s)
	var out strings.Builder
	c.rules(&cssTokens{s: s}, &out, 0)
	return out.String()
}

// rules reads to the end of a block, or at depth 0 of all.
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

// prelude reads to the block of a rule. false: there is no block.
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

// atRule keeps @media, and reads over the others: they load what is remote, or
// nothing that a mail needs.
func (c *cleaner) atRule(r *cssTokens, out *strings.Builder, depth int) {
	tokens, block := prelude(r)
	if !strings.EqualFold(tokens[0].text, "media") || depth >= maxMedia || !block {
		c.countTokens(tokens)
		if block {
			c.skipBlock(r)
		}
		return
	}
	query, ok := written(tokens[1:], mediaMarks)
	var inner strings.Builder
	c.rules(r, &inner, depth+1)
	r.next() // the bracket
	if ok && inner.Len() > 0 {
		out.WriteString("@media " + strings.TrimSpace(query) + "{" + inner.String() + "}\n")
	}
}

func (c *cleaner) rule(r *cssTokens, out *strings.Builder) {
	tokens, block := prelude(r)
	if !block {
		c.countTokens(tokens)
		return
	}
	body := c.declarations(r)
	r.next() // the bracket
	selector, ok := written(tokens, selectorMarks)
	if ok = ok && !strings.Contains(selector, "postroom-"); ok && body != "" {
		out.WriteString(strings.TrimSpace(selector) + "{" + body + "}\n")
	}
}

// skipBlock reads over a block and what it holds.
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

// What may stand in a selector and in a media query, besides names and numbers.
const (
	selectorMarks = ".,>+~*[]=:^$|"
	mediaMarks    = ":,()/"
)

// pseudo are the states that a selector may ask for. Those that make boxes of
// their own are not there: one of ours says where links lead.
var pseudo = setOf(`active first-child focus hover last-child link nth-child only-child visited root`)

// written writes a selector or media query anew. false: it may not stay.
func written(tokens []cssToken, marks string) (string, bool) {
	var out strings.Builder
	for i, t := range tokens {
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
		default: // a function among them
			return "", false
		}
	}
	s := out.String()
	return s, strings.TrimSpace(s) != "" && strings.Count(s, "[") == strings.Count(s, "]") && strings.Count(s, "(") == strings.Count(s, ")")
}
