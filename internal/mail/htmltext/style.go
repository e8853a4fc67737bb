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

// boxOf reports whether a style attribute gives a link a box that is seen without its text, and
// whether it has a background.
func boxOf(style []byte) (boxed, filled bool) {
	for decl := range bytes.SplitSeq(bytes.ToLower(style), []byte(";")) {
		prop, val, _ := bytes.Cut(decl, []byte(":"))
		value, _, _ := bytes.Cut(bytes.TrimSpace(val), []byte(" "))
		switch string(value) {
		case "", "none", "hidden", "transparent", "inherit", "initial", "0", "0px":
			continue
		}
		switch string(bytes.TrimSpace(prop)) {
		case "background", "background-color":
			filled = true
		case "padding", "padding-left", "padding-right", "padding-top", "padding-bottom", "border", "border-left", "border-right", "border-top", "border-bottom":
			boxed = true
		}
	}
	return boxed, filled
}
