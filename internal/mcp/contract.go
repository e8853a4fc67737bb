package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/postroom/postroom/gen"
)

// schema is a decoded JSON Schema.
type schema = map[string]any

// operation is one operation of the contract.
type operation struct {
	name         gen.OperationName
	method, path string
	params       []param // path and query parameters
	body         schema  // object schema; nil if there is no body
	keyed        bool    // takes an idempotency key
}

type param struct {
	name, in string
	required bool
	schema   schema
}

// contract is the parsed openapi.json.
type contract struct{ doc schema }

func readContract() (contract, error) {
	var c contract
	err := json.Unmarshal(gen.OpenAPI(), &c.doc)
	return c, err
}

// maxDepth bounds the nesting of schemas, because recursive schemas cannot be
// inlined.
const maxDepth = 30

// operation returns an operation with all references resolved.
func (c contract) operation(name gen.OperationName) (*operation, error) {
	for path, item := range object(c.doc["paths"]) {
		for method, v := range object(item) {
			op := object(v)
			if id, _ := op["operationId"].(string); !strings.EqualFold(id, string(name)) {
				continue
			}
			out := &operation{name: name, method: strings.ToUpper(method), path: path}
			return out, c.read(out, object(item), op)
		}
	}
	return nil, fmt.Errorf("the contract has no operation %s", name)
}

func (c contract) read(out *operation, item, op schema) error {
	for _, v := range slices.Concat(list(item["parameters"]), list(op["parameters"])) {
		resolved, err := c.resolve(v, 0)
		if err != nil {
			return err
		}
		p := object(resolved)
		in, _ := p["in"].(string)
		name, _ := p["name"].(string)
		required, _ := p["required"].(bool)
		if in == "header" {
			out.keyed = out.keyed || name == idempotencyHeader
			continue
		}
		s := maps.Clone(object(p["schema"]))
		if d, ok := p["description"]; ok {
			s["description"] = d
		}
		out.params = append(out.params, param{name, in, required, s})
	}
	body, err := c.resolve(object(object(object(op["requestBody"])["content"])["application/json"])["schema"], 0)
	if err != nil {
		return err
	}
	out.body = object(body)
	return nil
}

// resolve returns a copy of v with all references inlined. Keywords beside a
// reference are merged into it.
func (c contract) resolve(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("a schema of the contract is more than %d deep, or holds itself", maxDepth)
	}
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			var err error
			if out[i], err = c.resolve(v[i], depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	case schema:
		out := schema{}
		if ref, ok := v["$ref"].(string); ok {
			target, err := c.resolve(c.find(ref), depth+1)
			if err != nil {
				return nil, err
			}
			maps.Copy(out, object(target))
		}
		for name, value := range v {
			if name == "$ref" {
				continue
			}
			var err error
			if out[name], err = c.resolve(value, depth+1); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// find resolves a local reference.
func (c contract) find(ref string) any {
	var at any = c.doc
	for name := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
		at = object(at)[name]
	}
	return at
}

// prune removes the dropped keywords from a schema and its subschemas. Properties
// are kept, whatever their name.
func prune(v any, drop ...string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = prune(v[i], drop...)
		}
		return out
	case schema:
		out := schema{}
		for name, value := range v {
			switch {
			case slices.Contains(drop, name):
			case name == "properties":
				properties := schema{}
				for p, s := range object(value) {
					properties[p] = prune(s, drop...)
				}
				out[name] = properties
			default:
				out[name] = prune(value, drop...)
			}
		}
		return out
	}
	return v
}

func object(v any) schema {
	m, _ := v.(schema)
	return m
}

func list(v any) []any {
	l, _ := v.([]any)
	return l
}

func text(v any) string {
	s, _ := v.(string)
	return s
}
