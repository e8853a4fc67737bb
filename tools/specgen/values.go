package main

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"

	"go.yaml.in/yaml/v3"
)

// valuesGo returns Go constants for named enums that requests do not use.
// ogenYAML turns these enums into strings, so that ogen generates no constants.
// The constants are untyped and fit fields and parameters.
func valuesGo(root *yaml.Node) ([]byte, error) {
	requests := uses(root).requests
	var out bytes.Buffer
	out.WriteString(header + "package gen\n")
	for name, schema := range pairs(get(root, "components", "schemas")) {
		if !isEnum(schema) || requests[schema] {
			continue
		}
		fmt.Fprintf(&out, "\n// Values of %s in this version. Responses of a later version may contain others.\nconst (\n", name)
		for _, v := range get(schema, "enum").Content {
			if v.ShortTag() != "!!str" {
				return nil, fmt.Errorf("line %d: %s: an enum holds strings only", v.Line, name)
			}
			fmt.Fprintf(&out, "\t%s%s = %q\n", goName(name), goName(v.Value), v.Value)
		}
		out.WriteString(")\n")
	}
	return format.Source(out.Bytes())
}

// initialisms are written in capitals, as ogen does.
var initialisms = map[string]string{"api": "API", "dns": "DNS", "id": "ID", "ip": "IP", "mx": "MX", "url": "URL"}

// goName converts snake_case, camelCase or dotted words to a Go name.
func goName(s string) string {
	var b strings.Builder
	for _, word := range words(s) {
		if up, ok := initialisms[strings.ToLower(word)]; ok {
			b.WriteString(up)
			continue
		}
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// words splits s at characters other than letters and digits, and before a
// capital that follows a lower-case letter.
func words(s string) []string {
	var b strings.Builder
	prev := rune(' ')
	for _, r := range s {
		switch {
		case r >= 'A' && r <= 'Z' && prev >= 'a' && prev <= 'z':
			b.WriteByte(' ')
			b.WriteRune(r)
		case r >= '0' && r <= '9', r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z':
			b.WriteRune(r)
		default:
			b.WriteByte(' ')
		}
		prev = r
	}
	return strings.Fields(b.String())
}
