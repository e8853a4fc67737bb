package mailhtml

import (
	"slices"
	"strings"

	"github.com/postroom/postroom/internal/mail/css"
)

// This file limits the styles of a message so that no content covers a link, hides one, or
// hides the mark that shows a link's target. A box always grows with its content, nothing is
// clipped or transparent, and nothing moves against the direction of the text.

// covering are the properties that clip content, make it transparent, or paint outside of an
// element's own box.
var covering = setOf(`box-shadow max-height opacity outline outline-color outline-style outline-width overflow overflow-wrap
	overflow-x overflow-y table-layout text-overflow text-shadow word-break word-wrap`)

// moving are the properties that move content when they are negative.
var moving = setOf(`letter-spacing margin margin-bottom margin-left margin-right margin-top text-indent vertical-align word-spacing`)

// keepsSize are the elements whose content does not exceed their size, or that grow with it
// anyway.
var keepsSize = setOf(`hr img table tbody td tfoot th thead tr`)

// legible returns the legible form of a declaration, or no name if it is not allowed. element
// is empty if it is unknown.
func legible(name string, value []css.Token, element string) (string, []css.Token) {
	switch {
	case covering[name]:
		return "", value
	case moving[name]:
		if movesBack(value) {
			return "", value
		}
	case name == "height":
		if !keepsSize[element] {
			return "min-height", value
		}
	case name == "width", name == "max-width", name == "flex-basis":
		if !keepsSize[element] && narrow(value) {
			return "", value
		}
	case name == "white-space":
		if !css.OneOf(value, "normal", "pre-line", "pre-wrap") {
			return "", value
		}
	case name == "line-height":
		return lineHeight(name, value, 0)
	case name == "font":
		for i, t := range value {
			if t.Is("/") {
				return lineHeight(name, value, i+1)
			}
		}
	}
	return name, value
}

// hides reports whether a style hides an element or moves it far away. Clean removes such a
// style when it reveals hidden text.
func hides(name string, value []css.Token) bool {
	switch name {
	case "visibility":
		return true
	case "display":
		return len(value) > 0 && !css.OneOf(value, shownDisplays...)
	case "text-indent", "margin", "margin-left", "margin-top", "margin-right", "margin-bottom", "padding", "padding-left",
		"padding-right", "padding-top", "padding-bottom":
		return css.Most(value) > 200
	}
	return false
}

var shownDisplays = strings.Fields("block inline inline-block flex inline-flex list-item table inline-table table-row table-cell table-row-group table-header-group table-footer-group table-caption inherit initial")

// movesBack reports whether a length is negative, or may be after it is computed.
func movesBack(value []css.Token) bool {
	return slices.ContainsFunc(value, func(t css.Token) bool {
		return t.Kind == css.Function || t.Kind == css.Number && strings.HasPrefix(t.Text, "-")
	})
}

// narrow reports whether a width may be too small for a word.
func narrow(value []css.Token) bool {
	for _, t := range value {
		if t.Kind == css.Function {
			return true
		}
		if t.Kind != css.Number {
			continue
		}
		n, unit := css.Measured(t)
		switch unit {
		case "%", "vw", "vh":
			return n < 10
		case "em", "rem", "in", "cm":
			return n < 3
		}
		return n < 40
	}
	return false
}

// lineHeight returns a declaration whose line height begins at value[from], changed so that a
// line is never lower than its letters and lines do not overlap.
func lineHeight(name string, value []css.Token, from int) (string, []css.Token) {
	for from < len(value) && value[from].Kind == css.Space {
		from++
	}
	if from == len(value) {
		return "", value
	}
	t := value[from]
	if t.Kind == css.Ident { // normal, inherit
		return name, value
	}
	n, unit := css.Measured(t)
	switch {
	case t.Kind != css.Number || n < 0:
		return "", value
	case unit == "" && n >= 0.9, unit == "%" && n >= 90:
		return name, value
	case unit == "", unit == "%":
		return "", value
	}
	out := append([]css.Token{}, value[:from]...)
	out = append(out, css.Token{Kind: css.Function, Text: "max"}, css.Token{Kind: css.Number, Text: "0.9em"}, css.Token{Kind: css.Mark, Text: ","}, t, css.Token{Kind: css.Mark, Text: ")"})
	return name, append(out, value[from+1:]...)
}
