package handlers

import (
	"bytes"
	"encoding/base64"
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
	if errors.As(err, &fault) {
		return nil, fmt.Sprintf("it breaks at byte %d", fault.Offset)
	}
	return nil, "it ends too early"
}

var (
	decodedField = regexp.MustCompile(`decode field ("(?:[^"\\]|\\.)*")`)
	unknownField = regexp.MustCompile(`decode (\w+): callback: unexpected field ("(?:[^"\\]|\\.)*")$`)
	foundByte    = regexp.MustCompile(`unexpected byte \d+ '(.)' at \d+$`)
	foundType    = regexp.MustCompile(`unexpected json type "(\w+)"$`)
	foundFields  = regexp.MustCompile(`properties number (\d+) (?:greater|less) than `)
)

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
	if here && !(isList && at.inItems) && fault(v) {
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

// faultOf is the fault of a value that the decoder could not use, going by its
// message.
func faultOf(text string) func(any) bool {
	if strings.Contains(text, "illegal base64") {
		return notBase64
	}
	if m := foundFields.FindStringSubmatch(text); m != nil {
		return hasFields(m[1])
	}
	return is(unexpectedValue(text))
}

// hasFields is the fault of an object with too many fields, or too few, of
// which there are count.
func hasFields(count string) func(any) bool {
	return func(v any) bool {
		m, isObject := v.(map[string]any)
		return isObject && strconv.Itoa(len(m)) == count
	}
}

// notBase64 is the fault of a text that is no base64.
func notBase64(v any) bool {
	s, isText := v.(string)
	_, err := base64.StdEncoding.DecodeString(s)
	return isText && err != nil
}
