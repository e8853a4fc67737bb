package main

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// A value from a response can be sent back: if a resource's response allows null
// in a field, its requests allow null in the optional field of the same name.
// Null means the same as omitting the field.
func TestRequestsAllowTheNullOfResponses(t *testing.T) {
	t.Parallel()

	root := contractRoot(t)
	null := map[string]bool{} // by tag and path
	for _, item := range pairs(get(root, "paths")) {
		for _, op := range operations(item) {
			for status, response := range pairs(get(op, "responses")) {
				if status[0] != '2' {
					continue
				}
				bodies(root, response, func(name string, property *yaml.Node, _ bool) {
					if allowsNull(root, property) {
						null[tagOf(op)+wrapper.ReplaceAllString(snake(name), "")] = true
					}
				})
			}
		}
	}
	checked := 0
	for path, item := range pairs(get(root, "paths")) {
		for method, op := range operations(item) {
			bodies(root, get(op, "requestBody"), func(name string, property *yaml.Node, required bool) {
				if required || !null[tagOf(op)+snake(name)] {
					return
				}
				checked++
				if !allowsNull(root, property) {
					t.Errorf("%s %s, line %d: %s does not allow null, which responses of %s have", method, path, property.Line, name, tagOf(op))
				}
			})
		}
	}
	if checked < 30 {
		t.Errorf("only %d fields checked", checked)
	}
}

func tagOf(op *yaml.Node) string {
	tags := get(op, "tags")
	if tags == nil || len(tags.Content) == 0 {
		return ""
	}
	return tags.Content[0].Value
}

// snake converts camelCase to snake_case.
func snake(name string) string {
	var out strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			out.WriteByte('_')
		}
		out.WriteRune(r)
	}
	return strings.ToLower(out.String())
}

// wrapper matches the response fields that contain a resource.
var wrapper = regexp.MustCompile(`^(\.(data|message|emails))+`)

// bodies calls f for every property of the JSON bodies of a request or response,
// nested ones included. Names are paths such as .to.name.
func bodies(root, n *yaml.Node, f func(name string, property *yaml.Node, required bool)) {
	if target := deref(root, str(n, "$ref")); target != nil {
		n = target
	}
	var visit func(*yaml.Node, string)
	visit = func(schema *yaml.Node, path string) {
		if schema == nil {
			return
		}
		if strings.Count(path, ".") > 6 {
			return // a schema that contains itself
		}
		visit(deref(root, str(schema, "$ref")), path)
		required := map[string]bool{}
		if list := get(schema, "required"); list != nil {
			for _, name := range list.Content {
				required[name.Value] = true
			}
		}
		for name, property := range pairs(get(schema, "properties")) {
			f(path+"."+name, property, required[name])
			visit(property, path+"."+name)
		}
		visit(get(schema, "items"), path)
		for _, key := range []string{"oneOf", "anyOf", "allOf"} {
			if list := get(schema, key); list != nil && !isRequiredChoice(key, list) {
				for _, s := range list.Content {
					visit(s, path)
				}
			}
		}
	}
	for _, media := range pairs(get(n, "content")) {
		visit(get(media, "schema"), "")
	}
}

func allowsNull(root, schema *yaml.Node) bool {
	if target := deref(root, str(schema, "$ref")); target != nil && allowsNull(root, target) {
		return true
	}
	types := get(schema, "type")
	if types != nil && types.Value == "null" {
		return true
	}
	if types != nil {
		for _, one := range types.Content {
			if one.Value == "null" {
				return true
			}
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if list := get(schema, key); list != nil {
			for _, s := range list.Content {
				if allowsNull(root, s) {
					return true
				}
			}
		}
	}
	return false
}
