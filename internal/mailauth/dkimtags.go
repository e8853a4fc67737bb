package mailauth

import (
	"encoding/base64"
	"slices"
	"strings"
)

// tagList is a parsed "name=value; ..." list (RFC 6376 section 3.2). Values
// have no surrounding white space; all but i=, n= and z= have none at all.
type tagList map[string]string

// parseTags parses a tag list. It returns false if s is malformed or repeats a
// tag.
func parseTags(s string) (tagList, bool) {
	tags := tagList{}
	for item := range strings.SplitSeq(s, ";") {
		name, value, ok := strings.Cut(item, "=")
		name, value = trimSpace(name), trimSpace(value)
		if !ok && name == "" {
			continue // the end, after the last ";"
		}
		if _, twice := tags[name]; !ok || twice || !isWord(name, "_") {
			return nil, false
		}
		if name != "i" && name != "n" && name != "z" {
			value = spaceless.Replace(value)
		}
		tags[name] = value
	}
	return tags, true
}

const whiteSpace = " \t\r\n"

func trimSpace(s string) string { return strings.Trim(s, whiteSpace) }

// spaceless removes all white space from a text.
var spaceless = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "")

// splitList splits a list at its colons.
func splitList(s string) []string { return strings.Split(s, ":") }

func containsFold(list []string, want string) bool {
	return slices.ContainsFunc(list, func(s string) bool { return strings.EqualFold(s, want) })
}

// decodeBase64 decodes a value without white space. It returns false if the
// value is empty or malformed.
func decodeBase64(s string) ([]byte, bool) {
	b, err := base64.StdEncoding.DecodeString(s)
	return b, err == nil && len(b) > 0
}

// withoutValue returns a DKIM-Signature field without the value of b=, as it
// was signed (RFC 6376 section 3.5). Everything else stays, including white
// space.
func withoutValue(raw string) string {
	at := strings.IndexByte(raw, ':') + 1
	for at < len(raw) {
		end := len(raw)
		if i := strings.IndexByte(raw[at:], ';'); i >= 0 {
			end = at + i
		}
		if name, _, ok := strings.Cut(raw[at:end], "="); ok && trimSpace(name) == "b" {
			return raw[:at+len(name)+1] + raw[end:]
		}
		at = end + 1
	}
	return raw
}
