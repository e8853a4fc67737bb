package main

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// usage holds the mappings that requests and responses of a document use,
// directly or by reference. Webhook bodies count as responses, because the server
// sends them.
type usage struct {
	root                *yaml.Node
	requests, responses map[*yaml.Node]bool
}

// uses returns the usage of a document.
func uses(root *yaml.Node) usage {
	u := usage{root: root, requests: map[*yaml.Node]bool{}, responses: map[*yaml.Node]bool{}}
	for _, item := range pairs(get(root, "paths")) {
		u.reach(get(item, "parameters"), u.requests)
		for _, op := range operations(item) {
			u.reach(get(op, "parameters"), u.requests)
			u.reach(get(op, "requestBody"), u.requests)
			u.reach(get(op, "responses"), u.responses)
		}
	}
	for _, item := range pairs(get(root, "webhooks")) {
		for _, op := range operations(item) {
			u.reach(get(op, "requestBody"), u.responses)
		}
	}
	return u
}

func (u usage) reach(n *yaml.Node, seen map[*yaml.Node]bool) {
	if n == nil || seen[n] {
		return
	}
	if n.Kind == yaml.MappingNode {
		seen[n] = true
		u.reach(deref(u.root, str(n, "$ref")), seen)
	}
	for _, child := range n.Content {
		u.reach(child, seen)
	}
}

// layoutTimes sets the layout of each time. A time that requests and responses
// share would need two layouts, which is an error.
func (u usage) layoutTimes() error {
	var err error
	walk(u.root, func(n *yaml.Node) {
		if str(n, "format") != "date-time" || err != nil {
			return
		}
		switch {
		case u.requests[n] && u.responses[n]:
			err = fmt.Errorf("line %d: this time is used in requests and in responses", n.Line)
		case u.requests[n]:
			set(n, "x-ogen-time-format", scalar(timeIn))
		default:
			set(n, "x-ogen-time-format", scalar(timeOut))
		}
	})
	return err
}

// limitKeys are the keywords that limit a value without changing its type.
var limitKeys = []string{
	"minLength", "maxLength", "pattern", "minimum", "maximum", "multipleOf",
	"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
}

// dropLimits removes the limits of schemas that only responses use.
func (u usage) dropLimits() {
	walk(u.root, func(n *yaml.Node) {
		if u.responses[n] && !u.requests[n] {
			dropLimits(n)
		}
	})
}

// dropLimits removes the limits of one schema, including the pattern of property
// names.
func dropLimits(n *yaml.Node) {
	// A mapping of properties may have a property named type, whose value is a
	// mapping.
	if t := get(n, "type"); t == nil || t.Kind == yaml.MappingNode {
		return
	}
	dropKeys(n, limitKeys...)
	if str(n, "format") == "email" {
		dropKeys(n, "format")
	}
	for _, value := range pairs(get(n, "patternProperties")) {
		dropKeys(n, "patternProperties")
		set(n, "additionalProperties", value)
	}
}

// splitLimited creates a separate schema for responses where requests use a
// component with limits too. Its name derives from the shared one.
func (u usage) splitLimited() {
	schemas := get(u.root, "components", "schemas")
	limited := map[string]*yaml.Node{}
	for name, s := range pairs(schemas) {
		if u.requests[s] && u.responses[s] && str(s, "type") == "object" && get(s, "maxProperties") != nil {
			limited["#/components/schemas/"+name] = s
		}
	}
	walk(u.root, func(n *yaml.Node) {
		ref := str(n, "$ref")
		shared := limited[ref]
		if shared == nil || !u.responses[n] || u.requests[n] {
			return
		}
		name := strings.TrimPrefix(ref, "#/components/schemas/") + "Response"
		if get(schemas, name) == nil {
			own := clone(shared)
			walk(own, dropLimits)
			set(schemas, name, own)
		}
		set(n, "$ref", scalar("#/components/schemas/"+name))
	})
}

// openEnums calls open for each enum in a response, with the schema that lists
// the values: the schema itself or the one that it references. Enums of requests
// are unchanged. An enum inside an object that both use is an error.
//
// With names, an enum component that only responses use is opened itself, and
// references to it stay.
func (u usage) openEnums(names bool, open func(schema, values *yaml.Node)) error {
	named := map[*yaml.Node]bool{}
	for _, s := range pairs(get(u.root, "components", "schemas")) {
		named[s] = isEnum(s)
	}
	shared := func(n *yaml.Node) bool { return named[n] && (!names || u.requests[n]) }
	var err error
	walk(u.root, func(n *yaml.Node) {
		if err != nil || !u.responses[n] {
			return
		}
		target := deref(u.root, str(n, "$ref"))
		inPlace := isEnum(n) && !shared(n)
		switch {
		case !inPlace && !shared(target):
		case u.requests[n]:
			err = fmt.Errorf("line %d: this enum is used in requests and in responses", n.Line)
		case inPlace:
			open(n, n)
		default:
			open(n, target)
		}
	})
	return err
}

// toString turns an enum into a plain string, for ogen.
func toString(schema, _ *yaml.Node) {
	dropKeys(schema, "$ref", "enum")
	set(schema, "type", scalar("string"))
}

// knownValuesKey lists the known values of an extensible enum.
const knownValuesKey = "x-extensible-enum"

// toKnownValues turns an enum into a string with documented values, for the
// served document.
func toKnownValues(schema, values *yaml.Node) {
	list := clone(get(values, "enum"))
	text := str(schema, "description")
	if text == "" {
		text = str(values, "description")
	}
	if known := listValues(list); !mentions(text, list) {
		text = strings.TrimSpace(text + " " + known)
	}
	dropKeys(schema, "$ref", "enum")
	set(schema, "type", scalar("string"))
	set(schema, "description", scalar(text))
	set(schema, knownValuesKey, list)
}

// mentions reports whether a description names every value in code quotes.
func mentions(text string, values *yaml.Node) bool {
	return !slices.ContainsFunc(values.Content, func(v *yaml.Node) bool { return !strings.Contains(text, "`"+v.Value+"`") })
}

// listValues returns a sentence with the values of an enum.
func listValues(values *yaml.Node) string {
	var quoted []string
	for _, v := range values.Content {
		quoted = append(quoted, "`"+v.Value+"`")
	}
	if len(quoted) == 1 {
		return "The only value so far is " + quoted[0] + "."
	}
	return "One of " + strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1] + "; later versions may add values."
}

// isEnum reports whether a schema lists its values. A property may also be named
// enum, but its value is a mapping.
func isEnum(n *yaml.Node) bool {
	e := get(n, "enum")
	return e != nil && e.Kind == yaml.SequenceNode
}
