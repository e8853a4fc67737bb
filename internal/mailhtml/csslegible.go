package mailhtml

import (
	"slices"
	"strconv"
	"strings"
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
func legible(name string, value []cssToken, element string) (string, []cssToken) {
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
		if !oneOf(value, "normal", "pre-line", "pre-wrap") {
			return "", value
		}
	case name == "line-height":
		return lineHeight(name, value, 0)
	case name == "font":
		for i, t := range value {
			if t.is("/") {
				return lineHeight(name, value, i+1)
			}
		}
	}
	return name, value
}

// hides reports whether a style hides an element or moves it far away. Clean removes such a
// style when it reveals hidden text.
func hides(name string, value []cssToken) bool {
	switch name {
	case "visibility":
		return true
	case "display":
		return len(value) > 0 && !oneOf(value, shownDisplays...)
	case "text-indent", "margin", "margin-left", "margin-top", "margin-right", "margin-bottom", "padding", "padding-left",
		"padding-right", "padding-top", "padding-bottom":
		l := look{size: 16}
		return l.most(value) > 200
	}
	return false
}

var shownDisplays = strings.Fields("block inline inline-block flex inline-flex list-item table inline-table table-row table-cell table-row-group table-header-group table-footer-group table-caption inherit initial")

// movesBack reports whether a length is negative, or may be after it is computed.
func movesBack(value []cssToken) bool {
	return slices.ContainsFunc(value, func(t cssToken) bool {
		return t.kind == cssFunction || t.kind == cssNumber && strings.HasPrefix(t.text, "-")
	})
}

// narrow reports whether a width may be too small for a word.
func narrow(value []cssToken) bool {
	for _, t := range value {
		if t.kind == cssFunction {
			return true
		}
		if t.kind != cssNumber {
			continue
		}
		n, unit := measured(t)
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

// oneOf reports whether a value is one of some words.
func oneOf(value []cssToken, words ...string) bool {
	i := slices.IndexFunc(value, func(t cssToken) bool { return t.kind == cssIdent })
	return i >= 0 && slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(value[i].text, w) })
}

// lineHeight returns a declaration whose line height begins at value[from], changed so that a
// line is never lower than its letters and lines do not overlap.
func lineHeight(name string, value []cssToken, from int) (string, []cssToken) {
	for from < len(value) && value[from].kind == cssSpace {
		from++
	}
	if from == len(value) {
		return "", value
	}
	t := value[from]
	if t.kind == cssIdent { // normal, inherit
		return name, value
	}
	n, unit := measured(t)
	switch {
	case t.kind != cssNumber || n < 0:
		return "", value
	case unit == "" && n >= 0.9, unit == "%" && n >= 90:
		return name, value
	case unit == "", unit == "%":
		return "", value
	}
	out := append([]cssToken{}, value[:from]...)
	out = append(out, cssToken{cssFunction, "max"}, cssToken{cssNumber, "0.9em"}, cssToken{cssMark, ","}, t, cssToken{cssMark, ")"})
	return name, append(out, value[from+1:]...)
}

// measured returns the number and the unit of a length, the unit in lower case.
func measured(t cssToken) (n float64, unit string) {
	digits := strings.TrimRight(t.text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ%")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, "?"
	}
	return n, strings.ToLower(t.text[len(digits):])
}
