package htmltext

import (
	"bytes"
	"strconv"

	"golang.org/x/net/html/atom"
)

// Emphasis is how an element sets its text off.
type Emphasis uint8

const (
	NoEmphasis Emphasis = iota
	Bold                // bold or fixed-width
	Large               // a heading, large letters, or letters with space between them
)

// EmphasizedText is a short text that is set off.
type EmphasizedText struct {
	Text     string
	Emphasis Emphasis
}

// Limits of Page.Emphasized: the length of a text in bytes, and their number.
const (
	maxEmphasized   = 40
	maxEmphasizeds  = 200
	largeFontPixels = 20
)

// emphasisStack is the stack of open elements that set off their text.
type emphasisStack []emphasizedElement

type emphasizedElement struct {
	below    int // length of the element stack below it
	emphasis Emphasis
}

func (s *emphasisStack) open(below int, e Emphasis) {
	if e == NoEmphasis {
		return
	}
	if n := len(*s); n > 0 {
		e = max(e, (*s)[n-1].emphasis)
	}
	*s = append(*s, emphasizedElement{below, e})
}

// cut closes all elements above the first n.
func (s *emphasisStack) cut(n int) {
	for len(*s) > 0 && (*s)[len(*s)-1].below >= n {
		*s = (*s)[:len(*s)-1]
	}
}

// emphasize adds a visible text to Page.Emphasized if it is short and set off.
func (r *pageReader) emphasize(text []byte) {
	if len(r.emphasis) == 0 || len(r.page.Emphasized) == maxEmphasizeds || len(text) > 2*maxEmphasized {
		return
	}
	if text = bytes.TrimSpace(text); len(text) > 1 && len(text) <= maxEmphasized {
		r.page.Emphasized = append(r.page.Emphasized, EmphasizedText{string(text), r.emphasis[len(r.emphasis)-1].emphasis})
	}
}

// emphasisOf returns the emphasis of an element by its name.
func emphasisOf(tag atom.Atom) Emphasis {
	switch tag {
	case atom.H1, atom.H2, atom.H3, atom.Big:
		return Large
	case atom.B, atom.Strong, atom.Code, atom.Th, atom.H4:
		return Bold
	}
	return NoEmphasis
}

// emphasisOfStyle returns the emphasis that a declaration gives.
func emphasisOfStyle(prop string, val []byte) Emphasis {
	switch prop {
	case "font-size":
		if n, err := strconv.ParseFloat(string(bytes.TrimRight(val, "abcdefghijklmnopqrstuvwxyz% ")), 64); err == nil && isLarge(n, val) {
			return Large
		}
	case "letter-spacing":
		if !isZeroLength(val) && !bytes.HasPrefix(val, []byte("-")) && string(val) != "normal" {
			return Large
		}
	case "font-weight":
		if string(val) == "bold" || len(val) == 3 && val[0] >= '6' && val[0] <= '9' {
			return Bold
		}
	}
	return NoEmphasis
}

// isLarge reports whether a font size with a unit is large.
func isLarge(n float64, val []byte) bool {
	switch {
	case bytes.HasSuffix(val, []byte("em")):
		n *= 16
	case bytes.HasSuffix(val, []byte("pt")):
		n *= 4.0 / 3
	case bytes.HasSuffix(val, []byte("%")):
		n *= 0.16
	}
	return n >= largeFontPixels
}
