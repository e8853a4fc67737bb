package htmltext

import (
	"bytes"

	"golang.org/x/net/html/atom"
)

// isVoid reports whether an element has no content and no end tag.
func isVoid(tag atom.Atom) bool {
	switch tag {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input,
		atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}

// isUnseen reports whether the content of an element is never shown.
func isUnseen(tag atom.Atom) bool {
	switch tag {
	case atom.Script, atom.Style, atom.Title, atom.Noscript, atom.Template, atom.Iframe,
		atom.Object, atom.Svg, atom.Math, atom.Select, atom.Textarea, atom.Noembed, atom.Noframes,
		atom.Audio, atom.Video, atom.Canvas:
		return true
	}
	return false
}

// isBlock reports whether an element starts and ends a line.
func isBlock(tag atom.Atom) bool {
	switch tag {
	case atom.Div, atom.Tr, atom.Li, atom.Section, atom.Header, atom.Footer, atom.Article, atom.Nav,
		atom.Main, atom.Aside, atom.Form, atom.Fieldset, atom.Dt, atom.Dd, atom.Address, atom.Center,
		atom.Body, atom.Caption, atom.Hr, atom.Figure, atom.Figcaption, atom.Tbody, atom.Legend:
		return true
	}
	return isParagraph(tag)
}

// isParagraph reports whether an element has space above and below it.
func isParagraph(tag atom.Atom) bool {
	switch tag {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Blockquote, atom.Pre,
		atom.Ul, atom.Ol, atom.Dl, atom.Table:
		return true
	}
	return false
}

// fontSize is the font size that an element sets.
type fontSize int

const (
	sameSize fontSize = iota
	someSize
	zeroSize // layouts set it around text with a size of its own
)

// readStyle reports whether a style attribute hides an element, as newsletters
// do with their preview line, and which font size it sets.
func readStyle(style []byte) (hidden bool, size fontSize) {
	var clipped, flat bool
	for decl := range bytes.SplitSeq(bytes.ToLower(style), []byte(";")) {
		prop, val, ok := bytes.Cut(decl, []byte(":"))
		if !ok {
			continue
		}
		val = bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(val), []byte("!important")))
		switch string(bytes.TrimSpace(prop)) {
		case "display":
			hidden = hidden || string(val) == "none"
		case "visibility":
			hidden = hidden || string(val) == "hidden" || string(val) == "collapse"
		case "opacity":
			hidden = hidden || isZeroLength(val)
		case "font-size":
			if size = someSize; isZeroLength(val) {
				size = zeroSize
			}
		case "overflow":
			clipped = clipped || string(val) == "hidden"
		case "max-height", "height", "max-width", "width":
			flat = flat || isZeroLength(val)
		}
	}
	return hidden || clipped && flat, size
}

// isButtonStyle reports whether a style attribute gives a link a background.
func isButtonStyle(style []byte) bool {
	for decl := range bytes.SplitSeq(bytes.ToLower(style), []byte(";")) {
		prop, val, _ := bytes.Cut(decl, []byte(":"))
		switch string(bytes.TrimSpace(prop)) {
		case "background", "background-color":
			switch string(bytes.TrimSpace(val)) {
			case "", "none", "transparent", "inherit", "initial":
			default:
				return true
			}
		}
	}
	return false
}

// isZeroLength reports whether val is zero, such as 0, 0px or 0.0em.
func isZeroLength(val []byte) bool {
	digits := bytes.TrimRight(val, "abcdefghijklmnopqrstuvwxyz% ")
	return len(digits) > 0 && len(bytes.Trim(digits, "0.")) == 0
}
