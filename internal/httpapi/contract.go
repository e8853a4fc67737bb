package httpapi

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ogen-go/ogen/validate"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Contract explains what is wrong with a request that the generated server
// refused. It validates the request against the schemas of the API description.
// The schemas are compiled when they are first needed. A Contract is safe for
// concurrent use.
type Contract struct {
	text []byte
	load func() error

	mu       sync.Mutex
	doc      map[string]any
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// NewContract returns the contract of an OpenAPI 3.1 document in JSON.
func NewContract(openAPI []byte) *Contract {
	c := &Contract{text: openAPI, compiled: map[string]*jsonschema.Schema{}}
	c.load = sync.OnceValue(c.read)
	return c
}

const contractURL = "https://contract.invalid/openapi.json"

// These patterns exclude control characters. The served description allows the
// two Unicode line separators, because they break JavaScript.
const (
	servedOneLine = `^[^\x00-\x1F\x7F\x85]*$`
	strictOneLine = `^[^\x00-\x1F\x7F\x85\x{2028}\x{2029}]*$`
)

// read parses the description and keeps the part that describes requests.
func (c *Contract) read() error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.text))
	if err != nil {
		return fmt.Errorf("read the API description: %w", err)
	}
	doc, _ := v.(map[string]any)
	c.doc = map[string]any{"paths": doc["paths"], "components": doc["components"]}
	for _, item := range object(doc, "paths") {
		for _, op := range object(item) {
			delete(object(op), "responses")
		}
	}
	for _, unused := range []string{"responses", "examples", "headers"} {
		delete(object(doc, "components"), unused)
	}
	adapt(c.doc)
	c.compiler = jsonschema.NewCompiler()
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	for name, check := range formats {
		c.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			if text, isText := v.(string); isText {
				return check(text)
			}
			return nil
		}})
	}
	return c.compiler.AddResource(contractURL, c.doc)
}

// formats mirror the checks of the generated server.
var formats = map[string]func(string) error{
	"email":     validate.String{Email: true}.Validate,
	"byte":      func(s string) error { _, err := base64.StdEncoding.DecodeString(s); return err },
	"date-time": func(s string) error { _, err := time.Parse(time.RFC3339, s); return err },
	"uri":       func(string) error { return nil }, // the handler checks it
}

// adapt restores strict patterns and removes the rules about several fields.
// Handlers check and explain those.
func adapt(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v["pattern"] == servedOneLine {
			v["pattern"] = strictOneLine
		}
		if v["type"] == "object" {
			delete(v, "not")
			delete(v, "dependentSchemas")
		}
		for _, child := range v {
			adapt(child)
		}
	case []any:
		for _, child := range v {
			adapt(child)
		}
	}
}

// object returns the object at a path below v, or nil.
func object(v any, path ...string) map[string]any {
	m, _ := v.(map[string]any)
	for _, key := range path {
		m, _ = m[key].(map[string]any)
	}
	return m
}

// schema compiles the schema at a JSON pointer.
func (c *Contract) schema(pointer string) (*jsonschema.Schema, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.compiled[pointer]; s != nil {
		return s, nil
	}
	s, err := c.compiler.Compile(contractURL + pointer)
	if err == nil {
		c.compiled[pointer] = s
	}
	return s, err
}

var errNoSuchSchema = errors.New("the API description has no such schema")

// operation returns the operation with its pointer and the path item that it
// belongs to.
func (c *Contract) operation(id string) (op, item map[string]any, pointer string) {
	if c.load() != nil {
		return nil, nil, ""
	}
	for path, item := range object(c.doc, "paths") {
		for method, op := range object(item) {
			if o := object(op); o["operationId"] == id {
				return o, object(item), pointerTo("#", "paths", path, method)
			}
		}
	}
	return nil, nil, ""
}

var pointerForm = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

func pointerTo(base string, names ...string) string {
	for _, name := range names {
		base += "/" + pointerForm.Replace(name)
	}
	return base
}

// at returns the value at a JSON pointer of the description.
func (c *Contract) at(pointer string) any {
	var v any = c.doc
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "#/"), "/") {
		name = strings.NewReplacer("%7B", "{", "%7D", "}", "~1", "/", "~0", "~").Replace(name)
		switch parent := v.(type) {
		case map[string]any:
			v = parent[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(parent) {
				return nil
			}
			v = parent[i]
		default:
			return nil
		}
	}
	return v
}

// Body returns the faults of a JSON body, at most MaxFaults, in the order of
// the body. The list is empty if the schemas find none.
func (c *Contract) Body(operationID string, body []byte) ([]Fault, error) {
	op, _, pointer := c.operation(operationID)
	media := object(op, "requestBody", "content", "application/json")
	if media == nil {
		return nil, errNoSuchSchema
	}
	schema, err := c.schema(pointerTo(pointer, "requestBody", "content", "application/json", "schema"))
	if err != nil {
		return nil, err
	}
	doc, err := parseDocument(body)
	if err != nil {
		return nil, err
	}
	return c.faults(schema, doc), nil
}

// Param returns the faults of a parameter with these values.
func (c *Contract) Param(operationID, in, name string, values []string) ([]Fault, error) {
	op, item, pointer := c.operation(operationID)
	param, base := c.findParam(op, pointer, in, name)
	if param == nil {
		param, base = c.findParam(item, pointer[:max(0, strings.LastIndexByte(pointer, '/'))], in, name)
	}
	if param == nil {
		return nil, errNoSuchSchema
	}
	schema, err := c.schema(base + "/schema")
	if err != nil {
		return nil, err
	}
	doc, fault := paramValue(schema, values)
	if fault != "" {
		return []Fault{{name, fault}}, nil
	}
	faults := c.faults(schema, document{root: doc})
	for i := range faults {
		faults[i].Param = JoinPath(name, faults[i].Param)
	}
	return faults, nil
}

// findParam returns the parameter of an operation or a path, and its pointer.
func (c *Contract) findParam(owner map[string]any, pointer, in, name string) (map[string]any, string) {
	params, _ := owner["parameters"].([]any)
	for i, p := range params {
		base := pointerTo(pointer, "parameters", strconv.Itoa(i))
		if ref, ok := object(p)["$ref"].(string); ok {
			base, p = ref, c.at(ref)
		}
		got, _ := object(p)["name"].(string)
		if object(p)["in"] == in && (got == name || in == "header" && http.CanonicalHeaderKey(got) == http.CanonicalHeaderKey(name)) {
			return object(p), base
		}
	}
	return nil, ""
}

// paramValue returns the JSON value of a parameter, or the fault in its form.
func paramValue(schema *jsonschema.Schema, values []string) (v any, fault string) {
	for schema.Ref != nil {
		schema = schema.Ref
	}
	var types []string
	if schema.Types != nil {
		types = schema.Types.ToStrings()
	}
	switch {
	case slices.Contains(types, "array"):
		list := []any{}
		for item := range strings.SplitSeq(strings.Join(values, ","), ",") {
			list = append(list, item)
		}
		return list, ""
	case len(values) != 1:
		return nil, "must be given only once"
	case slices.Contains(types, "integer"):
		digits := strings.TrimPrefix(values[0], "-")
		if digits == "" || strings.Trim(digits, "0123456789") != "" {
			return nil, "must be a whole number"
		}
		return number(values[0]), ""
	}
	return values[0], ""
}
