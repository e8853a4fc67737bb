package template

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// piece is a literal, a variable, the address of a link with variables, or a block.
type piece struct {
	literal string
	path    string // of a variable or block
	keys    []string
	place   place
	raw     bool
	link    []piece
	block   *block
}

// block is {{#if path}} or {{#each path}}.
type block struct {
	each      bool
	body, not []piece // not is what follows {{else}}
}

// kind is what a tag in double braces is.
type kind int

const (
	isVariable kind = iota
	opensIf
	opensEach
	isElse
	closesIf
	closesEach
)

// variable is a variable of a template or a tag of a block, and its position in the text.
type variable struct {
	kind     kind
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
	p := parser{part: part, src: src, vars: vars, spots: make([]spot, len(vars))}
	if part == HTML {
		var bare []int
		if p.spots, bare, err = spotsOf(src, vars); err != nil {
			return nil, err
		}
		if len(bare) > 0 && !quote {
			return nil, &Error{Part: part, Reason: "has a variable in an attribute without quotes" + placeOf(src, bare[0])}
		}
		if len(bare) > 0 { // so that a value with a space stays one value
			return parseOnce(part, withQuotes(src, bare), false)
		}
		// A block between elements ends where it began for a program that reads the HTML, so
		// what is left out or repeated changes the place of nothing else.
		for i, v := range vars {
			if v.kind != isVariable && !p.spots[i].between {
				return nil, p.fault(v, "in a place without blocks: put it around whole elements or their text, not into a tag, a comment or a style")
			}
		}
	}
	pieces, err := p.pieces(0)
	if err == nil && p.next < len(vars) {
		err = p.fault(vars[p.next], "that no block opens")
	}
	return append(pieces, piece{literal: src[p.at:]}), err
}

// parser reads the pieces of a part.
type parser struct {
	part  Part
	src   string
	vars  []variable
	spots []spot

	at   int // what is before it has been read
	next int // the first variable that has not been read
}

func (p *parser) fault(v variable, reason string) error {
	return &Error{Part: p.part, Reason: "has " + excerpt(p.src[v.from:]) + " " + reason + placeOf(p.src, v.from)}
}

// maxBlocks is how deep blocks may be nested.
const maxBlocks = 10

// pieces reads up to the {{else}} or the end of the block that it is in, or the end of the
// part. nested is how many blocks are open.
func (p *parser) pieces(nested int) ([]piece, error) {
	var all []piece
	for p.next < len(p.vars) {
		v, s := p.vars[p.next], p.spots[p.next]
		switch {
		case v.kind == opensIf || v.kind == opensEach:
			if nested == maxBlocks {
				return nil, p.fault(v, "in "+strconv.Itoa(maxBlocks)+" other blocks: that is too deep")
			}
			all = append(all, piece{literal: p.upTo(v)})
			b, err := p.block(v, nested+1)
			if err != nil {
				return nil, err
			}
			all = append(all, b)
		case v.kind != isVariable:
			return append(all, piece{literal: p.upTo(v)}), nil
		case s.place == inLink:
			all = append(all, p.link(s)...)
		default:
			all = append(all, piece{literal: p.upTo(v)}, v.piece(s.place))
			p.next++
		}
	}
	return all, nil
}

// block reads the block that begins with a tag.
func (p *parser) block(opens variable, nested int) (piece, error) {
	b := &block{each: opens.kind == opensEach}
	shut, name := closesIf, "{{/if}}"
	if b.each {
		shut, name = closesEach, "{{/each}}"
	}
	p.next++
	var err error
	if b.body, err = p.pieces(nested); err != nil {
		return piece{}, err
	}
	if p.next < len(p.vars) && p.vars[p.next].kind == isElse {
		p.next++
		if b.not, err = p.pieces(nested); err != nil {
			return piece{}, err
		}
	}
	switch {
	case p.next == len(p.vars):
		return piece{}, p.fault(opens, "without "+name)
	case p.vars[p.next].kind != shut:
		return piece{}, p.fault(p.vars[p.next], "where "+name+" belongs")
	}
	p.next++
	out := opens.piece(inText)
	out.block = b
	return out, nil
}

// link reads up to the end of the address of a link.
func (p *parser) link(s spot) []piece {
	before := piece{literal: p.src[p.at:s.from]}
	p.at = s.from
	var address []piece
	for ; p.next < len(p.vars) && p.vars[p.next].from < s.to; p.next++ {
		v := p.vars[p.next]
		address = append(address, piece{literal: p.upTo(v)}, v.piece(inText))
	}
	address = append(address, piece{literal: p.src[p.at:s.to]})
	p.at = s.to
	return []piece{before, {link: address}}
}

// upTo returns the literal before a tag, and goes on after the tag. The tag of a block that
// is alone on its line takes the line with it.
func (p *parser) upTo(v variable) string {
	from, to := v.from, v.to
	if v.kind != isVariable {
		line := strings.TrimRight(p.src[p.at:from], " \t")
		rest := strings.TrimLeft(p.src[to:], " \t")
		begins := strings.HasSuffix(line, "\n") || line == "" && (p.at == 0 || p.src[p.at-1] == '\n')
		ends := strings.HasPrefix(rest, "\n") || strings.HasPrefix(rest, "\r\n")
		if begins && (ends || rest == "") {
			from = p.at + len(line)
			to = len(p.src) - len(rest)
			if ends {
				to += strings.IndexByte(rest, '\n') + 1
			}
		}
	}
	literal := p.src[p.at:from]
	p.at = to
	return literal
}

// maxVariables bounds the memory of a parsed part.
const maxVariables = 10_000

// keywords are the tags of blocks, by what they begin with. Those that open one have a path.
var keywords = []struct {
	word string
	kind kind
	path bool
}{{"#if", opensIf, true}, {"#each", opensEach, true}, {"else", isElse, false}, {"/if", closesIf, false}, {"/each", closesEach, false}}

// variables finds the variables of a part and the tags of its blocks. Other double braces
// are an error.
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
		hasPath := true
		if !v.raw {
			name, hasPath = v.keyword(name)
		}
		if hasPath {
			v.path = name[:pathLength(name)]
		}
		rest := strings.TrimLeftFunc(name[len(v.path):], unicode.IsSpace)
		if hasPath && v.path == "" || !strings.HasPrefix(rest, shut) {
			return nil, &Error{Part: part, Reason: "has " + excerpt(src[v.from:]) +
				", which is not a variable: write {{name}}, {{order.number}}, {{#if name}} … {{else}} … {{/if}} or {{#each list}} … {{/each}}" + placeOf(src, v.from)}
		}
		if len(all) == maxVariables {
			return nil, &Error{Part: part, Reason: "has more than " + strconv.Itoa(maxVariables) + " variables"}
		}
		v.to = len(src) - len(rest) + len(shut)
		all = append(all, v)
		at = v.to
	}
}

// keyword sets the kind of a tag. It returns what follows the keyword, and whether a path
// must follow.
func (v *variable) keyword(inside string) (rest string, hasPath bool) {
	for _, k := range keywords {
		after, ok := strings.CutPrefix(inside, k.word)
		trimmed := strings.TrimLeftFunc(after, unicode.IsSpace)
		if ok && (k.path && len(trimmed) < len(after) || !k.path && strings.HasPrefix(trimmed, "}}")) {
			v.kind = k.kind
			return trimmed, k.path
		}
	}
	return inside, true
}

// maxPath is how many bytes a path may have.
const maxPath = 200

// pathLength returns how many bytes of s are a path: names of letters, digits, _ and -,
// joined by dots. It is 0 for a path with an empty name.
func pathLength(s string) int {
	last := '.'
	for i, r := range s {
		switch {
		case i > maxPath:
			return 0
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
