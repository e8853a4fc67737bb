package template

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// piece is a literal, a variable, or the address of a link with variables.
type piece struct {
	literal string
	path    string // of a variable
	keys    []string
	place   place
	raw     bool
	link    []piece
}

// variable is a variable of a template and its position in the text.
type variable struct {
	from, to int
	path     string
	raw      bool
}

func (v variable) piece(at place) piece {
	return piece{path: v.path, keys: strings.Split(v.path, "."), place: at, raw: v.raw}
}

// parse splits a part into pieces.
func parse(part Part, src string) ([]piece, error) { return parseOnce(part, src, true) }

// parseOnce is parse; with quote, it may first put attribute values into quotes.
func parseOnce(part Part, src string, quote bool) ([]piece, error) {
	vars, err := variables(part, src)
	if err != nil || len(vars) == 0 {
		return []piece{{literal: src}}, err
	}
	spots := make([]spot, len(vars))
	if part == HTML {
		var bare []int
		if spots, bare, err = spotsOf(src, vars); err != nil {
			return nil, err
		}
		if len(bare) > 0 && !quote {
			return nil, &Error{Part: part, Reason: "has a variable in an attribute without quotes" + placeOf(src, bare[0])}
		}
		if len(bare) > 0 { // so that a value with a space stays one value
			return parseOnce(part, withQuotes(src, bare), false)
		}
	}
	var pieces []piece
	at := 0
	for i := 0; i < len(vars); {
		s := spots[i]
		if s.place != inLink {
			pieces = append(pieces, piece{literal: src[at:vars[i].from]}, vars[i].piece(s.place))
			at = vars[i].to
			i++
			continue
		}
		link := piece{}
		pieces = append(pieces, piece{literal: src[at:s.from]})
		for at = s.from; i < len(vars) && vars[i].from < s.to; i++ {
			link.link = append(link.link, piece{literal: src[at:vars[i].from]}, vars[i].piece(inText))
			at = vars[i].to
		}
		link.link = append(link.link, piece{literal: src[at:s.to]})
		pieces = append(pieces, link)
		at = s.to
	}
	return append(pieces, piece{literal: src[at:]}), nil
}

// maxVariables bounds the memory of a parsed part.
const maxVariables = 10_000

// variables finds the variables of a part. Other double braces are an error.
func variables(part Part, src string) ([]variable, error) {
	var all []variable
	for at := 0; ; {
		open := strings.Index(src[at:], "{{")
		if open < 0 {
			return all, nil
		}
		v := variable{from: at + open}
		inside, shut := src[v.from+2:], "}}"
		if strings.HasPrefix(inside, "{") {
			inside, shut, v.raw = inside[1:], "}}}", true
		}
		name := strings.TrimLeftFunc(inside, unicode.IsSpace)
		v.path = name[:pathLength(name)]
		rest := strings.TrimLeftFunc(name[len(v.path):], unicode.IsSpace)
		if v.path == "" || !strings.HasPrefix(rest, shut) {
			return nil, &Error{Part: part, Reason: "has " + excerpt(src[v.from:]) +
				", which is not a variable: write {{name}} or {{order.number}}, without logic" + placeOf(src, v.from)}
		}
		if len(all) == maxVariables {
			return nil, &Error{Part: part, Reason: "has more than " + strconv.Itoa(maxVariables) + " variables"}
		}
		v.to = len(src) - len(rest) + len(shut)
		all = append(all, v)
		at = v.to
	}
}

// pathLength returns how many bytes of s are a path: names of letters, digits, _ and -,
// joined by dots. It is 0 for a path with an empty name.
func pathLength(s string) int {
	last := '.'
	for i, r := range s {
		switch {
		case r == '.' && last == '.':
			return 0
		case r == '.', r == '_', r == '-', unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
			last = r
			continue
		case last == '.':
			return 0
		}
		return i
	}
	return 0 // nothing closes it
}

// excerpt returns the beginning of a text, in quotes, for a message.
func excerpt(s string) string {
	const long = 30
	s, _, _ = strings.Cut(s, "\n")
	if len(s) > long {
		n := long
		for !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n] + "…"
	}
	return `"` + s + `"`
}
