package mailhtml

import (
	"strings"

	"github.com/postroom/postroom/internal/mail/css"
)

// styleSheet returns the allowed rules of a style sheet: those for elements, also inside of
// media queries.
func (c *cleaner) styleSheet(s string) string {
	w := &sheetWriter{c, []*strings.Builder{{}}}
	css.ReadSheet(css.NewTokens(strings.NewReplacer("<!--", " ", "-->", " ").Replace(s)), w, 0)
	return w.open[0].String()
}

// sheetWriter writes the allowed rules of a style sheet: to the last of the open blocks, of
// which the first is the sheet itself.
type sheetWriter struct {
	c    *cleaner
	open []*strings.Builder
}

// At keeps @media and skips the others: they load remote content, or a message does not
// need them.
func (w *sheetWriter) At(tokens []css.Token, block bool, depth int) bool {
	if !strings.EqualFold(tokens[0].Text, "media") || depth >= css.MaxMedia || !block {
		w.c.sending.remove("style @"+nameOf(tokens[0].Text), "")
		return false
	}
	w.open = append(w.open, &strings.Builder{})
	return true
}

func (w *sheetWriter) End(tokens []css.Token) {
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

func (w *sheetWriter) Rule(tokens []css.Token, r *css.Tokens, _ int) {
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
func subject(selector []css.Token) string {
	name := ""
	for i, t := range selector {
		switch {
		case t.Is(","):
			return ""
		case t.Kind == css.Space, t.Is(">"), t.Is("+"), t.Is("~"):
			if i < len(selector)-1 {
				name = ""
			}
		case t.Kind == css.Ident && (i == 0 || !selector[i-1].Is(".") && !selector[i-1].Is(":") && !selector[i-1].Is("[")):
			name = strings.ToLower(t.Text)
		}
	}
	return name
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
func (f cssForm) write(tokens []css.Token) (string, bool) {
	var out strings.Builder
	var open css.Brackets
	before := css.Token{}
	for _, t := range tokens {
		if !open.Take(t) || len(open) > maxNested {
			return "", false
		}
		switch last := before; {
		case t.Kind == css.Space && last.Kind == css.Space:
			continue
		case t.Kind == css.Ident && (f.states == nil || !last.Is(":") || f.states[strings.ToLower(t.Text)]), t.Kind == css.Number, t.Kind == css.Space:
			out.WriteString(t.Text)
		case t.Kind == css.Hash:
			out.WriteString("#" + t.Text)
		case t.Kind == css.String && len(t.Text) <= maxValue && plainString.MatchString(t.Text):
			out.WriteString(`"` + t.Text + `"`)
		case t.Kind == css.URL && f.images != nil:
			if u := f.images(t.Text); u != "" {
				out.WriteString(`url("` + cssEscape(u) + `")`)
			}
		case t.Kind == css.Function && f.functions[t.Text]:
			out.WriteString(t.Text + "(")
		case t.Kind == css.Mark && strings.Contains(f.marks, t.Text):
			out.WriteString(t.Text)
		default:
			return "", false
		}
		before = t
	}
	return out.String(), len(open) == 0
}
