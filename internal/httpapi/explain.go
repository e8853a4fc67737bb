package httpapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ogen-go/ogen/validate"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/postroom/postroom/gen"
)

// The generated server decides whether a request is valid, but it stops at the first
// fault and names Go types. So a request that it refused is explained by the JSON
// schemas of the contract.

// Fault is one fault of a request.
type Fault struct {
	// Param is the field or parameter, such as to[1].email, or empty for the
	// body.
	Param string
	// Message says what is wrong with it. It follows the name of the field.
	Message string
}

// MaxFaults limits how many faults of one request are listed.
const MaxFaults = 20

// ExplainBody returns what is wrong with the JSON body of an operation, such as
// "sendMessage", that the generated server refused. It returns at least one fault
// and at most MaxFaults, in the order of the body, missing fields last. Time and
// memory are linear in the body.
func ExplainBody(operation string, body []byte) []Fault {
	if first := bytes.TrimLeft(body, " \t\r\n"); len(first) == 0 || first[0] != '{' {
		return []Fault{{"", "the body must be a JSON object"}}
	}
	doc, fault := readBody(body, true)
	if fault != nil {
		return []Fault{*fault}
	}
	faults := contract().faults(operation+" body", doc)
	if len(faults) == 0 {
		return []Fault{{"", "the body does not match the API description"}}
	}
	return faults
}

// ExplainParam returns what is wrong with a query parameter or header of an
// operation that the generated server refused. in is "query" or "header".
func ExplainParam(operation, in, name string, values []string) []Fault {
	c, key := contract(), operation+" "+in+" "+strings.ToLower(name)
	v, fault := paramValue(c.schema(key), values)
	if fault != "" {
		return []Fault{{name, fault}}
	}
	faults := c.faults(key, document{root: v})
	for i := range faults {
		faults[i].Param = JoinPath(name, faults[i].Param)
	}
	if len(faults) == 0 {
		return []Fault{{name, "is not valid"}}
	}
	return faults
}

// requestSchemas are the schemas of all requests. They are compiled when they are
// first needed.
type requestSchemas struct {
	first    map[string]bool   // the first segments of the paths below /v1
	urls     map[string]string // by operation and place: "sendMessage body", "listInboxes query limit"
	mu       sync.Mutex        // of compiler
	compiler *jsonschema.Compiler
}

const contractURL = "https://contract.invalid/openapi.json"

// contract reads the API description, which is a part of the program.
var contract = sync.OnceValue(func() *requestSchemas {
	c := &requestSchemas{first: map[string]bool{}, urls: map[string]string{}, compiler: jsonschema.NewCompiler()}
	v, _ := jsonschema.UnmarshalJSON(bytes.NewReader(gen.OpenAPI)) // tests explain every operation
	doc := object(v)
	requests := map[string]any{}
	for p, item := range object(doc["paths"]) {
		if segments := strings.Split(p, "/"); segments[1] == "v1" {
			c.first[segments[2]] = true
		}
		for _, op := range object(item) {
			c.addOperation(object(op), object(doc["components"]), requests)
		}
	}
	schemas := map[string]any{"schemas": object(doc["components"])["schemas"]}
	root := map[string]any{"components": schemas, "requests": requests}
	adapt(root)
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
	_ = c.compiler.AddResource(contractURL, root) // fails only for a second one
	return c
})

// addOperation adds the schemas of an operation to requests.
func (c *requestSchemas) addOperation(op, components, requests map[string]any) {
	id, _ := op["operationId"].(string)
	add := func(place string, schema any) {
		at := strconv.Itoa(len(requests))
		requests[at], c.urls[id+" "+place] = schema, contractURL+"#/requests/"+at
	}
	if body := op["requestBody"]; body != nil {
		media := object(object(object(body)["content"])["application/json"])
		add("body", media["schema"])
	}
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		param := object(p)
		if ref, ok := param["$ref"].(string); ok {
			param = object(object(components["parameters"])[path.Base(ref)])
		}
		name, _ := param["name"].(string)
		add(fmt.Sprint(param["in"], " ", strings.ToLower(name)), param["schema"])
	}
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// schema returns the schema of a request.
func (c *requestSchemas) schema(key string) *jsonschema.Schema { return c.compile(c.urls[key]) }

// compile returns a schema, which permits everything if there is none at the URL.
func (c *requestSchemas) compile(url string) *jsonschema.Schema {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := c.compiler.Compile(cmp.Or(url, contractURL+"#/none")) // compiles it once
	if err != nil {
		return &jsonschema.Schema{}
	}
	return s
}

// formats mirror the checks of the generated server.
var formats = map[string]func(string) error{
	"email":     validate.String{Email: true}.Validate,
	"byte":      func(s string) error { _, err := base64.StdEncoding.DecodeString(s); return err },
	"date-time": func(s string) error { _, err := time.Parse(time.RFC3339, s); return err },
	"uri":       func(string) error { return nil }, // the handler checks it
}

// These patterns exclude control characters. The served description allows the
// two Unicode line separators, because they break JavaScript.
const (
	servedOneLine = `^[^\x00-\x1F\x7F\x85]*$`
	strictOneLine = `^[^\x00-\x1F\x7F\x85\x{2028}\x{2029}]*$`
)

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
