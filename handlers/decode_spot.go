package handlers

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/ogen-go/ogen/validate"
)

// spot is where to look: below the fields names, and there in the items of a
// list or at the value itself.
type spot struct {
	names   []string
	inItems bool
}

// spotOf reads a spot out of a message of the decoder.
func spotOf(text string) spot {
	var at spot
	last := 0
	for _, m := range decodedField.FindAllStringSubmatchIndex(text, -1) {
		at.names = append(at.names, unquote(text[m[2]:m[3]]))
		last = m[1]
	}
	at.inItems = len(at.names) > 0 && strings.Contains(text[last:], "callback: ")
	return at
}

// locate returns the path of the first value at the spot that has the fault,
// or of the spot when none has.
func (at spot) locate(doc any, fault func(v any) bool) string {
	if path, ok := at.search(doc, fault); ok {
		return path
	}
	return strings.Join(at.names, ".")
}

func (at spot) search(v any, fault func(v any) bool) (path string, ok bool) {
	here := len(at.names) == 0
	items, isList := v.([]any)
	if here && (!isList || !at.inItems) && fault(v) {
		return "", true
	}
	if isList {
		at.inItems = at.inItems && !here
		for i, item := range items {
			if rest, ok := at.search(item, fault); ok {
				return joinRest("["+strconv.Itoa(i)+"]", rest), true
			}
		}
		return "", false
	}
	fields, isObject := v.(map[string]any)
	if here || !isObject {
		return "", false
	}
	field, there := fields[at.names[0]]
	if !there {
		return "", false
	}
	rest, ok := spot{at.names[1:], at.inItems}.search(field, fault)
	return joinRest(at.names[0], rest), ok
}

func joinRest(first, rest string) string {
	if rest == "" {
		return first
	}
	return joinPath(first, rest)
}

// lacks is the fault of an object without one of its required fields.
func lacks(err *validate.Error) func(any) bool {
	return func(v any) bool {
		m, isObject := v.(map[string]any)
		if !isObject || len(err.Fields) == 0 {
			return false
		}
		_, there := m[err.Fields[0].Name]
		return !there
	}
}

// has is the fault of an object with a field that it may not have.
func has(name string) func(any) bool {
	return func(v any) bool {
		m, isObject := v.(map[string]any)
		_, there := m[name]
		return isObject && there
	}
}

// is is the fault of a value of a JSON type. Without a type every text and
// number has it: the first is then where the decoder stopped.
func is(jsonType string) func(any) bool {
	return func(v any) bool {
		switch v.(type) {
		case nil:
			return jsonType == "null"
		case bool:
			return jsonType == "bool"
		case json.Number:
			return jsonType == "number" || jsonType == ""
		case string:
			return jsonType == "string" || jsonType == ""
		case []any:
			return jsonType == "array"
		default:
			return jsonType == "object"
		}
	}
}

// notBase64 is the fault of a text that is no base64.
func notBase64(v any) bool {
	s, isText := v.(string)
	_, err := base64.StdEncoding.DecodeString(s)
	return isText && err != nil
}
