package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/ogen-go/ogen/validate"
)

// The generated decoder stops at the first fault and tells the names of the
// fields that it was in, not the items of lists. The item is found by looking
// at the body again: it is the first one at that place that has the fault.

// parseBody reads a body that the decoder refused. syntax says why it is no
// JSON; it is empty when it is.
func parseBody(body []byte) (doc any, syntax string) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	err := d.Decode(&doc)
	if err == nil {
		_, err = d.Token()
		if errors.Is(err, io.EOF) {
			return doc, ""
		}
		return nil, "something follows after it"
	}
	var fault *json.SyntaxError
	if errors.As(err, &fault) && fault.Offset < int64(len(body)) {
		return nil, fmt.Sprintf("it breaks at byte %d", fault.Offset)
	}
	return nil, "it ends too early"
}

var (
	decodedField = regexp.MustCompile(`decode field ("(?:[^"\\]|\\.)*")`)
	unknownField = regexp.MustCompile(`decode (\w+): callback: unexpected field ("(?:[^"\\]|\\.)*")$`)
	foundByte    = regexp.MustCompile(`unexpected byte \d+ '(.)' at \d+$`)
	foundType    = regexp.MustCompile(`unexpected json type "(\w+)"$`)
)

// decodedNames are the fields that the decoder was in, outermost first.
func decodedNames(text string) []string {
	var names []string
	for _, m := range decodedField.FindAllStringSubmatch(text, -1) {
		names = append(names, unquote(m[1]))
	}
	return names
}

func unquote(s string) string {
	u, err := strconv.Unquote(s)
	if err != nil {
		return strings.Trim(s, `"`)
	}
	return u
}

// unexpectedField is the name of a field that the schema does not have.
func unexpectedField(text string) (name string, ok bool) {
	m := unknownField.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return unquote(m[2]), true
}

// fixedFields tells a request, whose fields have names of ours, from a map,
// whose names are the caller's and must only have a certain form.
func fixedFields(text string) bool {
	switch unknownField.FindStringSubmatch(text)[1] {
	case "Metadata", "Tags", "MailHeaders":
		return false
	}
	return true
}

// unexpectedValue is the JSON type that the decoder met and could not use, or
// empty when the type was not what was wrong.
func unexpectedValue(text string) string {
	if m := foundType.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	m := foundByte.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "floating point") {
		return ""
	}
	switch m[1] {
	case `"`:
		return "string"
	case "{":
		return "object"
	case "[":
		return "array"
	case "t", "f":
		return "bool"
	case "n":
		return "null"
	default:
		return "number"
	}
}

// locate returns the path of the first value below the fields names that has
// the fault, or of those fields when none has.
func locate(v any, names []string, fault func(v any) bool) string {
	if path, ok := search(v, names, fault); ok {
		return path
	}
	return strings.Join(names, ".")
}

func search(v any, names []string, fault func(v any) bool) (path string, ok bool) {
	if len(names) == 0 && fault(v) {
		return "", true
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			if rest, ok := search(item, names, fault); ok {
				return joinRest("["+strconv.Itoa(i)+"]", rest), true
			}
		}
	case map[string]any:
		if len(names) == 0 {
			return "", false
		}
		field, has := v[names[0]]
		if !has {
			return "", false
		}
		if rest, ok := search(field, names[1:], fault); ok {
			return joinRest(names[0], rest), true
		}
	}
	return "", false
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

// is is the fault of a value of a JSON type. Without a type every value that
// is no list has it: the first is then where the decoder stopped.
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
