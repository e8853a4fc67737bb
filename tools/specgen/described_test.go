package main

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Every schema, property, parameter, header, operation and webhook has a
// description. A property may take that of the component it refers to.
func TestEverythingIsDescribed(t *testing.T) {
	t.Parallel()

	root := contractRoot(t)
	described := 0
	want := func(where string, n *yaml.Node) {
		described++
		text := str(n, "description")
		if text == "" {
			text = str(deref(root, str(n, "$ref")), "description")
		}
		if !strings.HasSuffix(strings.TrimSpace(text), ".") {
			t.Errorf("line %d: %s: the description %q is not a sentence", n.Line, where, text)
		}
	}
	for path, item := range pairs(get(root, "paths")) {
		for method, op := range operations(item) {
			want(method+" "+path, op)
		}
	}
	for name, item := range pairs(get(root, "webhooks")) {
		want("webhook "+name, get(item, "post"))
	}
	for _, kind := range []string{"parameters", "headers", "schemas", "responses"} {
		for name, c := range pairs(get(root, "components", kind)) {
			want(kind+" "+name, c)
		}
	}
	for name, schema := range pairs(get(root, "components", "schemas")) {
		rules := rulesOf(schema)
		walk(schema, func(n *yaml.Node) {
			if rules[n] {
				return
			}
			for property, s := range pairs(get(n, "properties")) {
				condition := get(s, "type") == nil && get(s, "const") != nil || len(s.Content) == 0
				if s.Kind == yaml.MappingNode && !condition {
					want(name+"."+property, s)
				}
			}
		})
	}
	if described < 500 {
		t.Errorf("only %d descriptions checked", described)
	}
}

// rulesOf returns the schemas that only state which fields belong together: they
// repeat properties that are defined elsewhere.
func rulesOf(schema *yaml.Node) map[*yaml.Node]bool {
	rules := map[*yaml.Node]bool{}
	walk(schema, func(n *yaml.Node) {
		for key, value := range pairs(n) {
			if key == "not" || key == "dependentSchemas" || isRequiredChoice(key, value) {
				walk(value, func(below *yaml.Node) { rules[below] = true })
			}
		}
	})
	return rules
}
