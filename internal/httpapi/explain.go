package httpapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ogen-go/ogen/validate"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/nearname"
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
	read := readBody(body)
	if read.fault != nil {
		return []Fault{*read.fault}
	}
	if read.values > maxExplained {
		return []Fault{{"", fmt.Sprintf("the body has a fault, which is not looked for among more than %d values: send fewer items", maxExplained)}}
	}
	var doc any
	if err := json.Unmarshal(body, &doc); err != nil {
		return []Fault{{"", "a number in the body is out of range"}}
	}
	if _, isObject := doc.(map[string]any); !isObject {
		return []Fault{{"", "the body must be a JSON object"}}
	}
	if faults := contract().faults(operation+" body", doc, read.order); len(faults) > 0 {
		return faults
	}
	return []Fault{{"", "the body does not match the API description"}}
}

// ExplainParam returns what is wrong with a query parameter or header of an
// operation that the generated server refused. in is "query" or "header".
func ExplainParam(operation, in, name string, values []string) []Fault {
	key := operation + " " + in + " " + strings.ToLower(name)
	v, fault := paramValue(contract().schema(key), values)
	if fault != "" {
		return []Fault{{name, fault}}
	}
	faults := contract().faults(key, v, nil)
	for i := range faults {
		faults[i].Param = JoinPath(name, faults[i].Param)
	}
	if len(faults) == 0 {
		return []Fault{{name, "is not valid"}}
	}
	return faults
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
	case !slices.Contains(types, "integer"):
		return values[0], ""
	}
	if digits := strings.TrimPrefix(values[0], "-"); digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil, "must be a whole number"
	}
	n, _ := strconv.ParseFloat(values[0], 64) // infinite if it is out of range
	return max(-math.MaxFloat64, min(math.MaxFloat64, n)), ""
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
	v, _ := jsonschema.UnmarshalJSON(bytes.NewReader(gen.OpenAPI())) // tests explain every operation
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
	root := map[string]any{"components": map[string]any{"schemas": object(doc["components"])["schemas"]}, "requests": requests}
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
	add := func(place string, schema any) {
		at := strconv.Itoa(len(requests))
		requests[at], c.urls[fmt.Sprint(op["operationId"], " ", place)] = schema, contractURL+"#/requests/"+at
	}
	if body := object(op["requestBody"]); body != nil {
		add("body", object(object(body["content"])["application/json"])["schema"])
	}
	params, _ := op["parameters"].([]any)
	for _, p := range params {
		param := object(p)
		if ref, ok := param["$ref"].(string); ok {
			param = object(object(components["parameters"])[path.Base(ref)])
		}
		add(strings.ToLower(fmt.Sprint(param["in"], " ", param["name"])), param["schema"])
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

// faults validates a document, whose fields are in this order. It returns one fault for
// each value.
func (c *requestSchemas) faults(key string, doc any, order map[string]int) (out []Fault) {
	failed, ok := errors.AsType[*jsonschema.ValidationError](c.schema(key).Validate(doc))
	if !ok {
		return nil
	}
	byPlace := map[string]Fault{}
	for _, e := range leaves(failed) {
		for field, message := range c.describe(e) {
			at := e.InstanceLocation
			if field != "" {
				at = append(slices.Clone(at), field)
			}
			param, place := locate(at, doc, order)
			if _, twice := byPlace[place]; !twice {
				byPlace[place] = Fault{param, message}
			}
		}
	}
	places := slices.Sorted(maps.Keys(byPlace))
	for _, place := range places[:min(len(places), MaxFaults)] {
		out = append(out, byPlace[place])
	}
	return out
}

// locate formats a path as to[1].email, and as a place, which sorts as the body does.
// Missing fields come last.
func locate(path []string, v any, order map[string]int) (param, place string) {
	for i, name := range path {
		if list, ok := v.([]any); ok {
			n, _ := strconv.Atoi(name) // the validator writes indexes
			param, place, v = JoinPath(param, "["+name+"]"), fmt.Sprintf("%s/%06d", place, n), list[n]
			continue
		}
		value, sent := object(v)[name]
		switch {
		case !sent:
			place += "~"
		case i == 0:
			place = fmt.Sprintf("%06d", order[name])
		}
		param, place, v = JoinPath(param, name), place+"/"+name, value
	}
	return param, place
}

// JoinPath adds a name, or an index such as [3], to a path.
func JoinPath(prefix, name string) string {
	if prefix == "" || name == "" || strings.HasPrefix(name, "[") {
		return prefix + name
	}
	return prefix + "." + name
}

// leaves returns the errors that have no causes. Of alternatives it returns those of
// the one that has the type of the value, or else one error with all their types.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	var types kind.Type
	for _, cause := range e.Causes {
		below := leaves(cause)
		switch e.ErrorKind.(type) {
		case *kind.OneOf, *kind.AnyOf:
			t, ok := below[0].ErrorKind.(*kind.Type)
			if !ok || len(below[0].InstanceLocation) > len(e.InstanceLocation) {
				return below
			}
			types.Got, types.Want = t.Got, append(types.Want, t.Want...)
			all = []*jsonschema.ValidationError{{InstanceLocation: e.InstanceLocation, ErrorKind: &types}}
		default:
			all = append(all, below...)
		}
	}
	return all
}

// describe explains a validation error: by the names of the fields that it is about, or
// "" for the value itself.
func (c *requestSchemas) describe(e *jsonschema.ValidationError) map[string]string {
	itself := func(message string) map[string]string { return map[string]string{"": message} }
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return itself(typeMessage(k.Got, k.Want))
	case *kind.Required:
		fields := map[string]string{}
		for _, name := range k.Missing {
			fields[name] = "is required"
		}
		return fields
	case *kind.AdditionalProperties:
		return unknownFields(c.compile(e.SchemaURL), k.Properties)
	case *kind.Enum:
		list := fmt.Sprintf(strings.Repeat(", %v", len(k.Want)), k.Want...)
		say := "must be one of " + strings.TrimPrefix(list, ", ")
		if text := Quoted(k.Got); text != "" {
			say = "is " + strings.TrimPrefix(text, ": ") + ", but " + say
		}
		return itself(say)
	case *kind.MinLength:
		if s := c.compile(e.SchemaURL); k.Got > 0 && s.Pattern != nil && s.Pattern.String() == mailboxPattern {
			return nil // not an email address says more
		}
		return itself(sizeMessage("least", k.Want, k.Got, "character"))
	case *kind.MaxLength:
		return itself(sizeMessage("most", k.Want, k.Got, "character"))
	case *kind.MinItems:
		return itself(sizeMessage("least", k.Want, k.Got, "item"))
	case *kind.MaxItems:
		return itself(sizeMessage("most", k.Want, k.Got, "item"))
	case *kind.MaxProperties:
		return itself(sizeMessage("most", k.Want, k.Got, "field"))
	case *kind.UniqueItems:
		return itself(fmt.Sprintf("contains the same item twice, at %d and %d", k.Duplicates[0], k.Duplicates[1]))
	case *kind.Minimum:
		return itself("must be at least " + k.Want.RatString())
	case *kind.Maximum:
		return itself("must be at most " + k.Want.RatString())
	case *kind.Pattern:
		say := patternMessage(k.Want)
		if k.Want == mailboxPattern {
			say += Quoted(k.Got)
		}
		return itself(say)
	case *kind.Format:
		say := cmp.Or(formatRules[k.Want], "is not a valid "+k.Want)
		if text, _ := k.Got.(string); k.Want == "date-time" && spaceForPlus.MatchString(text) {
			say = "has a space in its offset: write + as %2B in a URL"
		}
		if k.Want != "byte" {
			say += Quoted(k.Got)
		}
		return itself(say)
	}
	return itself("is not valid")
}

// unknownFields explains why a schema does not allow these fields.
func unknownFields(schema *jsonschema.Schema, names []string) map[string]string {
	fields, known := map[string]string{}, slices.Sorted(maps.Keys(schema.Properties))
	for _, name := range names {
		fields[name] = "is not a field of this request" + nearname.Hint(name, known)
		for pattern := range schema.PatternProperties {
			fields[name] = "is not an allowed name: a name " + patternMessage(pattern.String())
		}
	}
	return fields
}

// mailboxPattern is that of an address with or without a name. The handler checks
// the rest of the grammar.
const mailboxPattern = `^[^\x00-\x1F\x7F\x85]*[^\x00-\x1F\x7F\x85 @]@[^\x00-\x1F\x7F\x85 @<>]+>? *$`

const notAnAddress = "is not an email address"

// patternRules describe the patterns of the contract.
var patternRules = map[string]string{
	strictOneLine:  "must not contain line breaks or other control characters",
	mailboxPattern: notAnAddress,
	`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`: "may only have the letters a to z, digits, hyphens and underscores, " +
		"and single dots between them",
	`^https?://`:       "must start with http:// or https://",
	`^.+:`:             "must have the form name:value",
	`^[0-9]+$`:         "may only have digits",
	`^.{1,40}$`:        "must have 1 to 40 characters",
	`^[!-9;-~]{1,76}$`: "must have 1 to 76 visible ASCII characters and no colon",
}

func patternMessage(pattern string) string {
	return cmp.Or(patternRules[pattern], "must match "+pattern)
}

var formatRules = map[string]string{
	"email":     notAnAddress,
	"byte":      "is not base64 with padding",
	"date-time": "is not a time with a date and an offset, like 2027-01-31T10:00:00Z",
	"date":      "is not a date, like 2027-01-31",
}

// spaceForPlus matches a time with an offset whose plus sign a URL has turned into a space.
var spaceForPlus = regexp.MustCompile(`T[0-9:.]+ [0-9]{2}:?[0-9]{2}$`)

// types are the JSON types with their articles.
var types = [...]struct{ name, say string }{
	{"string", "a string"}, {"object", "an object"}, {"array", "an array"}, {"number", "a number"},
	{"integer", "a whole number"}, {"boolean", "a boolean"}, {"null", "null"},
}

func typeMessage(got string, want []string) string {
	if got == "number" && slices.Contains(want, "integer") {
		return "must be a whole number"
	}
	var names []string
	for _, t := range types {
		if slices.Contains(want, t.name) {
			names = append(names, t.say)
		}
		if t.name == got {
			got = t.say
		}
	}
	if last := len(names) - 1; last > 0 {
		names = []string{strings.Join(names[:last], ", "), names[last]}
	}
	return "must be " + strings.Join(names, " or ") + ", not " + got
}

// sizeMessage explains a size outside a bound: the "least" or the "most".
func sizeMessage(bound string, want, got int, unit string) string {
	if bound == "least" && got == 0 {
		return "must not be empty"
	}
	if want != 1 {
		unit += "s"
	}
	return fmt.Sprintf("must have at %s %d %s, but has %d", bound, want, unit, got)
}

// maxQuoted limits the length of values in messages.
const maxQuoted = 60

// Quoted formats a short text to append to a message, so that the reader sees
// what arrived.
func Quoted(v any) string {
	if s, ok := v.(string); ok && s != "" && len(s) <= maxQuoted {
		return ": " + strconv.Quote(s)
	}
	return ""
}
