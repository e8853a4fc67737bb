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
	if fault, ok := errors.AsType[*json.SyntaxError](err); ok {
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
