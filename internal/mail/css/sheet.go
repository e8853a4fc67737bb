package css

import (
	"slices"
	"strconv"
	"strings"
)

// MaxMedia is how deep at-rules may be nested.
const MaxMedia = 4

// SheetReader is told of the rules of a style sheet. At returns whether the rules in the block
// of an at-rule are read, and End is called after them. Rule reads the block of a rule.
type SheetReader interface {
	At(prelude []Token, block bool, depth int) (inside bool)
	End(prelude []Token)
	Rule(selector []Token, r *Tokens, depth int)
}

// ReadSheet reads to the end of a block or, at depth 0, of the input.
func ReadSheet(r *Tokens, to SheetReader, depth int) {
	for {
		t := r.Peek()
		switch {
		case t.Kind == End, t.Is("}") && depth > 0:
			return
		case t.Kind == Space, t.Is(";"), t.Is("}"):
			r.Next()
		case t.Kind == At:
			tokens, block := prelude(r)
			switch {
			case to.At(tokens, block, depth):
				ReadSheet(r, to, depth+1)
				r.Next() // the bracket
				to.End(tokens)
			case block:
				skipBlock(r)
			}
		default:
			if tokens, block := prelude(r); block {
				to.Rule(tokens, r, depth)
				r.Next() // the bracket
			}
		}
	}
}

// EachDeclaration reads to the end of a block or of the input.
func EachDeclaration(r *Tokens, do func(name string, value []Token)) {
	for {
		t := r.Peek()
		switch {
		case t.Kind == End, t.Is("}"):
			return
		case t.Kind == Space, t.Is(";"):
			r.Next()
		default:
			do(declared(r))
		}
	}
}

// prelude reads to the block of a rule. It returns false if there is no block.
func prelude(r *Tokens) ([]Token, bool) {
	var tokens []Token
	for {
		if t := r.Peek(); t.Kind == End || t.Is("}") {
			return tokens, false
		}
		t := r.Next()
		switch {
		case t.Is("{"):
			return tokens, true
		case t.Is(";") && len(tokens) > 0 && tokens[0].Kind == At:
			return tokens, false
		}
		tokens = append(tokens, t)
	}
}

// skipBlock skips a block and its content.
func skipBlock(r *Tokens) {
	for depth := 1; depth > 0; {
		t := r.Next()
		switch {
		case t.Kind == End:
			return
		case t.Is("{"):
			depth++
		case t.Is("}"):
			depth--
		}
	}
}

// Brackets are the closing characters of the open Brackets.
type Brackets []byte

// Take updates the open Brackets with a token. It returns false if the token closes another
// bracket than the last open one.
func (b *Brackets) Take(t Token) bool {
	switch {
	case t.Kind == Function, t.Is("("):
		*b = append(*b, ')')
	case t.Is("["):
		*b = append(*b, ']')
	case t.Is("{"):
		*b = append(*b, '}')
	case t.Is(")"), t.Is("]"), t.Is("}"):
		last := len(*b) - 1
		if last < 0 || (*b)[last] != t.Text[0] {
			return false
		}
		*b = (*b)[:last]
	}
	return true
}

// declared reads to the end of a declaration. The name is empty if it is not a declaration.
func declared(r *Tokens) (name string, value []Token) {
	if t := r.Next(); t.Kind == Ident {
		name = strings.ToLower(t.Text)
	} else {
		value = append(value, t)
	}
	for r.Peek().Kind == Space {
		r.Next()
	}
	if r.Peek().Is(":") {
		r.Next()
	} else {
		name = ""
	}
	var open Brackets
	for {
		t := r.Peek()
		if t.Kind == End || len(open) == 0 && (t.Is(";") || t.Is("}")) {
			return name, value
		}
		open.Take(t) // an unmatched closing bracket is part of the value
		value = append(value, r.Next())
	}
}

// OneOf reports whether a value is one of some words.
func OneOf(value []Token, words ...string) bool {
	i := slices.IndexFunc(value, func(t Token) bool { return t.Kind == Ident })
	return i >= 0 && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(value[i].Text, w) })
}

// Measured returns the number and the unit of a length, the unit in lower case.
func Measured(t Token) (n float64, unit string) {
	digits := strings.TrimRight(t.Text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || strings.ContainsAny(digits, "xX") { // a hexadecimal number is not one in CSS
		return 0, "?"
	}
	return n, strings.ToLower(t.Text[len(digits):])
}
