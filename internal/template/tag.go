package template

import "strings"

// attribute is an attribute of a tag. Its value is between from and to.
type attribute struct {
	name     string // lower case
	quoted   bool
	from, to int
}

const space = " \t\n\f\r"

// tagName returns the name in a start tag, in lower case.
func tagName(tag string) string {
	return strings.ToLower(tag[1:nameEnd(tag, 1)])
}

// nameEnd returns the end of the tag name that begins at i.
func nameEnd(tag string, i int) int {
	for i < len(tag) && !strings.ContainsRune(space+"/>", rune(tag[i])) {
		i++
	}
	return i
}

// attributes parses a tag as browsers do (HTML, 13.2.5.32 to 13.2.5.39).
func attributes(tag string) []attribute {
	var all []attribute
	for i := nameEnd(tag, 1); i < len(tag); {
		if strings.ContainsRune(space+"/>", rune(tag[i])) {
			i++
			continue
		}
		var a attribute
		a, i = readAttribute(tag, i)
		all = append(all, a)
	}
	return all
}

// readAttribute parses the attribute that begins at i, and returns where it ends.
func readAttribute(tag string, i int) (attribute, int) {
	begin := i
	for i++; i < len(tag) && !strings.ContainsRune(space+"/>=", rune(tag[i])); i++ { // the first character may even be =
	}
	a := attribute{name: strings.ToLower(tag[begin:i]), from: i, to: i}
	equals := skipSpace(tag, i)
	if equals == len(tag) || tag[equals] != '=' {
		return a, i
	}
	i = skipSpace(tag, equals+1)
	if i < len(tag) && (tag[i] == '"' || tag[i] == '\'') {
		quote := strings.IndexByte(tag[i+1:], tag[i])
		if quote < 0 {
			quote = len(tag) - i - 1
		}
		a.quoted, a.from, a.to = true, i+1, i+1+quote
		return a, min(a.to+1, len(tag))
	}
	a.from = i
	for i < len(tag) && !strings.ContainsRune(space+">", rune(tag[i])) {
		i++
	}
	a.to = i
	return a, i
}

func skipSpace(tag string, i int) int {
	return len(tag) - len(strings.TrimLeft(tag[i:], space))
}
