package css

import (
	"strings"
	"unicode/utf8"
)

// Kind is the kind of a token of a style sheet (CSS Syntax Module Level 3, section 4), as
// far as it matters here.
type Kind int

// The kinds of tokens.
const (
	End      Kind = iota
	Ident         // text is the name
	Function      // text is the name; the bracket was read too
	At            // text is the name
	Hash          // text is the name
	String        // text is the content of the quotes
	URL           // text is the address
	Number        // text is the number with its unit
	Space
	Mark // text is one character
	Bad  // what is never written
)

// Token is a token of a style sheet.
type Token struct {
	Kind Kind
	Text string
}

// Is reports whether the token is this mark.
func (t Token) Is(mark string) bool { return t.Kind == Mark && t.Text == mark }

// Tokens is a tokenizer for style sheets. It never resolves a backslash: a token with one
// is Bad, and so is a token that a browser may read further than this tokenizer.
type Tokens struct {
	s      string
	next   Token
	peeked bool // next is the token that comes next
}

// NewTokens returns a tokenizer for a style sheet or a style attribute.
func NewTokens(s string) *Tokens { return &Tokens{s: s} }

// Peek returns the next token and leaves it to be read.
func (r *Tokens) Peek() Token {
	if !r.peeked {
		r.next, r.peeked = r.read(), true
	}
	return r.next
}

// Next returns the next token.
func (r *Tokens) Next() Token {
	t := r.Peek()
	r.peeked = false
	return t
}

func (r *Tokens) read() Token {
	if strings.HasPrefix(r.s, "/*") {
		r.skipComments()
		return Token{Space, " "}
	}
	if r.s == "" {
		return Token{}
	}
	switch b := r.s[0]; {
	case isSpace(b):
		r.take(isSpace)
		return Token{Space, " "}
	case b == '"' || b == '\'':
		return r.quoted(b)
	case isDigit(b), (b == '.' || b == '+' || b == '-') && r.number():
		return r.measure()
	case isName(b) || b == '-' && len(r.s) > 1 && (isName(r.s[1]) || r.s[1] == '-'):
		return r.name()
	case (b == '#' || b == '@') && len(r.s) > 1 && isNamePart(r.s[1]):
		r.s = r.s[1:]
		text := r.take(isNamePart)
		return r.unlessEscaped(Token{map[byte]Kind{'#': Hash, '@': At}[b], text})
	case b < utf8.RuneSelf && strings.IndexByte(`{}()[]:;,>+~*/.=!%^$|-`, b) >= 0:
		r.s = r.s[1:]
		return Token{Mark, string(b)}
	}
	r.s = r.s[1:]
	return Token{Bad, ""}
}

// skipComments skips comments. A comment separates the text around it, so the caller writes
// a space instead: "u/**/rl" must not become "url".
func (r *Tokens) skipComments() {
	for strings.HasPrefix(r.s, "/*") {
		_, rest, closed := strings.Cut(r.s[2:], "*/")
		if !closed {
			rest = ""
		}
		r.s = rest
	}
}

// take reads bytes of one kind.
func (r *Tokens) take(is func(byte) bool) string {
	n := 0
	for n < len(r.s) && is(r.s[n]) {
		n++
	}
	text := r.s[:n]
	r.s = r.s[n:]
	return text
}

// unlessEscaped returns t, unless an escape makes it a part of something longer.
func (r *Tokens) unlessEscaped(t Token) Token {
	if strings.HasPrefix(r.s, `\`) {
		return Token{Bad, ""}
	}
	return t
}

func (r *Tokens) name() Token {
	text := r.take(isNamePart)
	if !strings.HasPrefix(r.s, "(") {
		return r.unlessEscaped(Token{Ident, text})
	}
	r.s = r.s[1:]
	if !strings.EqualFold(text, "url") {
		return Token{Function, strings.ToLower(text)}
	}
	rest := strings.TrimLeft(r.s, " \t\r\n\f")
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		r.s = rest
		t := r.quoted(rest[0])
		r.take(isSpace)
		if t.Kind != String || !strings.HasPrefix(r.s, ")") {
			return r.badURL()
		}
		r.s = r.s[1:]
		return Token{URL, t.Text}
	}
	end := strings.IndexAny(rest, `)"'(\`)
	if end < 0 || rest[end] != ')' {
		r.s = rest
		return r.badURL()
	}
	r.s = rest[end+1:]
	return Token{URL, strings.TrimSpace(rest[:end])}
}

// badURL reads to the end of an invalid address.
func (r *Tokens) badURL() Token {
	_, r.s, _ = strings.Cut(r.s, ")")
	return Token{Bad, ""}
}

func (r *Tokens) quoted(quote byte) Token {
	end := strings.IndexAny(r.s[1:], string(quote)+"\n\r\f\\")
	if end < 0 {
		r.s = ""
		return Token{Bad, ""}
	}
	text, at := r.s[1:1+end], r.s[1+end]
	if at == quote {
		r.s = r.s[1+end+1:]
		return Token{String, text}
	}
	r.s = r.s[1+end:]
	if at == '\\' {
		r.skipQuoted(quote)
	}
	return Token{Bad, ""}
}

// skipQuoted skips the rest of a string that contains an escape.
func (r *Tokens) skipQuoted(quote byte) {
	i := 0
	for i < len(r.s) && r.s[i] != quote && r.s[i] != '\n' {
		if r.s[i] == '\\' {
			i++
		}
		i++
	}
	r.s = r.s[min(i+1, len(r.s)):]
}

// number reports whether a number begins with this sign or point.
func (r *Tokens) number() bool {
	s := strings.TrimLeft(r.s[:min(len(r.s), 2)], "+-")
	if len(s) == 0 {
		return false
	}
	if isDigit(s[0]) {
		return true
	}
	at := len(r.s[:min(len(r.s), 2)]) - len(s)
	return s[0] == '.' && at+1 < len(r.s) && isDigit(r.s[at+1])
}

func (r *Tokens) measure() Token {
	start := r.s
	if r.s[0] == '+' || r.s[0] == '-' {
		r.s = r.s[1:]
	}
	r.take(isDigit)
	if len(r.s) > 1 && r.s[0] == '.' && isDigit(r.s[1]) {
		r.s = r.s[1:]
		r.take(isDigit)
	}
	if strings.HasPrefix(r.s, "%") {
		r.s = r.s[1:]
	} else if len(r.s) > 0 && isName(r.s[0]) {
		r.take(isNamePart)
	}
	return r.unlessEscaped(Token{Number, start[:len(start)-len(r.s)]})
}

func isSpace(b byte) bool    { return b == ' ' || b == '\t' || b == '\n' || b == '\r' || b == '\f' }
func isDigit(b byte) bool    { return b >= '0' && b <= '9' }
func isName(b byte) bool     { return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' || b >= utf8.RuneSelf }
func isNamePart(b byte) bool { return isName(b) || isDigit(b) || b == '-' }
