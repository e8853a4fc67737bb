package mailhtml

import (
	"strings"
	"unicode/utf8"
)

// cssKind is the kind of a token of a style sheet (CSS Syntax Module Level 3, section 4), as
// far as it matters here.
type cssKind int

const (
	cssEnd      cssKind = iota
	cssIdent            // text is the name
	cssFunction         // text is the name; the bracket was read too
	cssAt               // text is the name
	cssHash             // text is the name
	cssString           // text is the content of the quotes
	cssURL              // text is the address
	cssNumber           // text is the number with its unit
	cssSpace
	cssMark // text is one character
	cssBad  // what is never written
)

type cssToken struct {
	kind cssKind
	text string
}

func (t cssToken) is(mark string) bool { return t.kind == cssMark && t.text == mark }

// cssTokens is a tokenizer for style sheets. It never resolves a backslash: a token with one
// is cssBad, and so is a token that a browser may read further than this tokenizer.
type cssTokens struct {
	s      string
	peeked *cssToken
}

func (r *cssTokens) peek() cssToken {
	if r.peeked == nil {
		t := r.read()
		r.peeked = &t
	}
	return *r.peeked
}

func (r *cssTokens) next() cssToken {
	t := r.peek()
	r.peeked = nil
	return t
}

func (r *cssTokens) read() cssToken {
	if strings.HasPrefix(r.s, "/*") {
		r.skipComments()
		return cssToken{cssSpace, " "}
	}
	if r.s == "" {
		return cssToken{}
	}
	switch b := r.s[0]; {
	case isSpace(b):
		r.take(isSpace)
		return cssToken{cssSpace, " "}
	case b == '"' || b == '\'':
		return r.quoted(b)
	case isDigit(b), (b == '.' || b == '+' || b == '-') && r.number():
		return r.measure()
	case isName(b) || b == '-' && len(r.s) > 1 && (isName(r.s[1]) || r.s[1] == '-'):
		return r.name()
	case (b == '#' || b == '@') && len(r.s) > 1 && isNamePart(r.s[1]):
		r.s = r.s[1:]
		text := r.take(isNamePart)
		return r.unlessEscaped(cssToken{map[byte]cssKind{'#': cssHash, '@': cssAt}[b], text})
	case b < utf8.RuneSelf && strings.IndexByte(`{}()[]:;,>+~*/.=!%^$|-`, b) >= 0:
		r.s = r.s[1:]
		return cssToken{cssMark, string(b)}
	}
	r.s = r.s[1:]
	return cssToken{cssBad, ""}
}

// skipComments skips comments. A comment separates the text around it, so the caller writes
// a space instead: "u/**/rl" must not become "url".
func (r *cssTokens) skipComments() {
	for strings.HasPrefix(r.s, "/*") {
		_, rest, closed := strings.Cut(r.s[2:], "*/")
		if !closed {
			rest = ""
		}
		r.s = rest
	}
}

// take reads bytes of one kind.
func (r *cssTokens) take(is func(byte) bool) string {
	n := 0
	for n < len(r.s) && is(r.s[n]) {
		n++
	}
	text := r.s[:n]
	r.s = r.s[n:]
	return text
}

// unlessEscaped returns t, unless an escape makes it a part of something longer.
func (r *cssTokens) unlessEscaped(t cssToken) cssToken {
	if strings.HasPrefix(r.s, `\`) {
		return cssToken{cssBad, ""}
	}
	return t
}

func (r *cssTokens) name() cssToken {
	text := r.take(isNamePart)
	if !strings.HasPrefix(r.s, "(") {
		return r.unlessEscaped(cssToken{cssIdent, text})
	}
	r.s = r.s[1:]
	if !strings.EqualFold(text, "url") {
		return cssToken{cssFunction, strings.ToLower(text)}
	}
	rest := strings.TrimLeft(r.s, " \t\r\n\f")
	if rest != "" && (rest[0] == '"' || rest[0] == '\'') {
		r.s = rest
		t := r.quoted(rest[0])
		r.take(isSpace)
		if t.kind != cssString || !strings.HasPrefix(r.s, ")") {
			return r.badURL()
		}
		r.s = r.s[1:]
		return cssToken{cssURL, t.text}
	}
	end := strings.IndexAny(rest, `)"'(\`)
	if end < 0 || rest[end] != ')' {
		r.s = rest
		return r.badURL()
	}
	r.s = rest[end+1:]
	return cssToken{cssURL, strings.TrimSpace(rest[:end])}
}

// badURL reads to the end of an invalid address.
func (r *cssTokens) badURL() cssToken {
	_, r.s, _ = strings.Cut(r.s, ")")
	return cssToken{cssBad, ""}
}

func (r *cssTokens) quoted(quote byte) cssToken {
	end := strings.IndexAny(r.s[1:], string(quote)+"\n\r\f\\")
	if end < 0 {
		r.s = ""
		return cssToken{cssBad, ""}
	}
	text, at := r.s[1:1+end], r.s[1+end]
	if at == quote {
		r.s = r.s[1+end+1:]
		return cssToken{cssString, text}
	}
	r.s = r.s[1+end:]
	if at == '\\' {
		r.skipQuoted(quote)
	}
	return cssToken{cssBad, ""}
}

// skipQuoted skips the rest of a string that contains an escape.
func (r *cssTokens) skipQuoted(quote byte) {
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
func (r *cssTokens) number() bool {
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

func (r *cssTokens) measure() cssToken {
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
	return r.unlessEscaped(cssToken{cssNumber, start[:len(start)-len(r.s)]})
}

func isSpace(b byte) bool    { return b == ' ' || b == '\t' || b == '\n' || b == '\r' || b == '\f' }
func isDigit(b byte) bool    { return b >= '0' && b <= '9' }
func isName(b byte) bool     { return b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' || b >= utf8.RuneSelf }
func isNamePart(b byte) bool { return isName(b) || isDigit(b) || b == '-' }
