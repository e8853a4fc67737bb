package pdftext

import (
	"bytes"
	"strconv"
)

// The values of a PDF: numbers are float64, strings are string, and arrays []any.
type (
	name    string
	ref     int // the number of an object
	keyword string
	dict    map[name]any
	stream  struct {
		dict dict
		raw  []byte
	}
)

// maxArray is the largest number of values that an array keeps.
const maxArray = 20_000

// lexer reads values from bytes. It only moves forward.
type lexer struct {
	b    []byte
	i    int
	left *int // how many values may still be read
}

func isSpace(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

// isRegular reports whether c is part of a name, number or keyword.
func isRegular(c byte) bool {
	return !isSpace(c) && !bytes.ContainsRune([]byte("()<>[]{}/%"), rune(c))
}

// skip moves to the next value.
func (l *lexer) skip() {
	for l.i < len(l.b) {
		switch c := l.b[l.i]; {
		case isSpace(c):
			l.i++
		case c == '%':
			for l.i < len(l.b) && l.b[l.i] != '\n' && l.b[l.i] != '\r' {
				l.i++
			}
		default:
			return
		}
	}
}

// word reads a run of regular characters.
func (l *lexer) word() string {
	start := l.i
	for l.i < len(l.b) && isRegular(l.b[l.i]) {
		l.i++
	}
	return string(l.b[start:l.i])
}

// value reads the next value. ok is false at the end, and at a bracket that closes.
func (l *lexer) value(depth int) (v any, ok bool) {
	l.skip()
	if *l.left--; *l.left < 0 || l.i >= len(l.b) || depth > maxDepth {
		l.i = len(l.b)
		return nil, false
	}
	switch c := l.b[l.i]; c {
	case '/':
		l.i++
		return l.name(), true
	case '(':
		l.i++
		return l.text(), true
	case '<':
		l.i++
		if l.i < len(l.b) && l.b[l.i] == '<' {
			l.i++
			return l.dict(depth + 1), true
		}
		return l.hex(), true
	case '[':
		l.i++
		return l.array(depth + 1), true
	case ']', '>', ')', '{', '}':
		return nil, false
	}
	w := l.word()
	if n, err := strconv.ParseFloat(w, 64); err == nil {
		if r, ok := l.reference(n); ok {
			return r, true
		}
		return n, true
	}
	return keyword(w), true
}

// number reads a number.
func (l *lexer) number() (float64, bool) {
	l.skip()
	n, err := strconv.ParseFloat(l.word(), 64)
	return n, err == nil
}

// reference reads the rest of a reference to the object n, if there is one.
func (l *lexer) reference(n float64) (ref, bool) {
	at := l.i
	l.skip()
	digits := l.word()
	if len(digits) == 0 || len(digits) > 5 || digits[0] < '0' || digits[0] > '9' {
		l.i = at
		return 0, false
	}
	l.skip()
	if l.i < len(l.b) && l.b[l.i] == 'R' && (l.i+1 == len(l.b) || !isRegular(l.b[l.i+1])) && n >= 0 && n < 1e9 {
		l.i++
		return ref(n), true
	}
	l.i = at
	return 0, false
}

// name reads a name after its slash.
func (l *lexer) name() name {
	w := l.word()
	for i := 0; i+2 < len(w); i++ {
		if w[i] == '#' {
			if c, err := strconv.ParseUint(w[i+1:i+3], 16, 8); err == nil {
				w = w[:i] + string(rune(c)) + w[i+3:]
			}
		}
		if i > 100 {
			break // such names name nothing here
		}
	}
	return name(w)
}

// text reads a string in parentheses.
func (l *lexer) text() string {
	var out []byte
	for open := 1; l.i < len(l.b); l.i++ {
		c := l.b[l.i]
		switch c {
		case '\\':
			l.i++
			out = l.escape(out)
			continue
		case '(':
			open++
		case ')':
			if open--; open == 0 {
				l.i++
				return string(out)
			}
		}
		out = append(out, c)
	}
	return string(out)
}

// escape appends what follows a backslash. It leaves the position at its last byte.
func (l *lexer) escape(out []byte) []byte {
	if l.i >= len(l.b) {
		return out
	}
	c := l.b[l.i]
	if c >= '0' && c <= '7' {
		n := 0
		for k := 0; k < 3 && l.i < len(l.b) && l.b[l.i] >= '0' && l.b[l.i] <= '7'; k++ {
			n = n*8 + int(l.b[l.i]-'0')
			l.i++
		}
		l.i--
		return append(out, byte(n))
	}
	switch c {
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'b', 'f':
		c = ' '
	case '\n':
		return out
	case '\r':
		if l.i+1 < len(l.b) && l.b[l.i+1] == '\n' {
			l.i++
		}
		return out
	}
	return append(out, c)
}

// hex reads a string of hexadecimal digits.
func (l *lexer) hex() string {
	var out []byte
	half, high := false, byte(0)
	for ; l.i < len(l.b); l.i++ {
		c := l.b[l.i]
		var d byte
		switch {
		case c == '>':
			l.i++
			if half {
				out = append(out, high<<4)
			}
			return string(out)
		case c >= '0' && c <= '9':
			d = c - '0'
		case c >= 'a' && c <= 'f':
			d = c - 'a' + 10
		case c >= 'A' && c <= 'F':
			d = c - 'A' + 10
		default:
			continue
		}
		if half {
			out = append(out, high<<4|d)
		}
		half, high = !half, d
	}
	return string(out)
}

// array reads an array after its bracket.
func (l *lexer) array(depth int) []any {
	var all []any
	for {
		v, ok := l.value(depth)
		if !ok {
			if l.i < len(l.b) { // the bracket that closes it, or a wrong one
				l.i++
			}
			return all
		}
		if len(all) < maxArray {
			all = append(all, v)
		}
	}
}

// dict reads a dictionary after its brackets.
func (l *lexer) dict(depth int) dict {
	d := dict{}
	for {
		key, ok := l.value(depth)
		if !ok {
			for k := 0; k < 2 && l.i < len(l.b) && l.b[l.i] == '>'; k++ {
				l.i++
			}
			return d
		}
		n, isName := key.(name)
		if !isName {
			continue
		}
		v, ok := l.value(depth)
		if !ok {
			continue // the next round ends
		}
		d[n] = v
	}
}
