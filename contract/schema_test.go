package contract_test

import (
	"maps"
	"regexp"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// schemas are all schemas that may apply to one place of a body, including all
// alternatives, since the value decides which applies.
type schemas []*openapi3.Schema

// schemasOf returns a schema and its parts.
func schemasOf(ref *openapi3.SchemaRef) schemas {
	if ref == nil || ref.Value == nil {
		return nil
	}
	all := schemas{ref.Value}
	for _, part := range slices.Concat(ref.Value.OneOf, ref.Value.AnyOf, ref.Value.AllOf) {
		all = append(all, schemasOf(part)...)
	}
	return all
}

// member returns the schemas of a member of an object.
func (s schemas) member(name string) schemas {
	var all schemas
	for _, schema := range s {
		found, ok := schema.Properties[name]
		if ok {
			all = append(all, schemasOf(found)...)
		}
		for pattern, ref := range schema.PatternProperties {
			if regexp.MustCompile(pattern).MatchString(name) {
				all = append(all, schemasOf(ref)...)
			}
		}
	}
	return all
}

// item returns the schemas of an item of a list.
func (s schemas) item() schemas {
	var all schemas
	for _, schema := range s {
		all = append(all, schemasOf(schema.Items)...)
	}
	return all
}

// names returns the sorted names of the known members.
func (s schemas) names() []string {
	all := map[string]bool{}
	for _, schema := range s {
		for name := range schema.Properties {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// open reports whether members may have any name that matches a pattern.
func (s schemas) open() bool {
	return slices.ContainsFunc(s, func(schema *openapi3.Schema) bool { return len(schema.PatternProperties) > 0 })
}

// bounds returns the minimum and maximum of a size in a schema.
type bounds func(*openapi3.Schema) (least uint64, most *uint64)

func textBounds(s *openapi3.Schema) (uint64, *uint64)   { return s.MinLength, s.MaxLength }
func itemBounds(s *openapi3.Schema) (uint64, *uint64)   { return s.MinItems, s.MaxItems }
func memberBounds(s *openapi3.Schema) (uint64, *uint64) { return s.MinProps, s.MaxProps }

// sizes returns the sizes at the limits and just beyond them.
func (s schemas) sizes(of bounds) []int {
	var all []int
	for _, schema := range s {
		least, most := of(schema)
		if most != nil {
			n := int(*most) //nolint:gosec // a limit of ours, far from any overflow
			all = append(all, n, n+1)
		}
		if least > 0 {
			n := int(least) //nolint:gosec // as above
			all = append(all, n, n-1)
		}
	}
	return once(all)
}

// numbers returns the numbers at the limits and just beyond them.
func (s schemas) numbers() []any {
	var all []any
	for _, schema := range s {
		for _, edge := range []*float64{schema.Min, schema.Max} {
			if edge != nil {
				all = append(all, *edge-1, *edge, *edge+1)
			}
		}
	}
	return all
}

// words returns the enum values of the schemas.
func (s schemas) words() []any {
	var all []any
	for _, schema := range s {
		all = append(all, schema.Enum...)
	}
	return all
}

// formats returns the formats of the schemas.
func (s schemas) formats() []string {
	var all []string
	for _, schema := range s {
		if schema.Format != "" {
			all = append(all, schema.Format)
		}
	}
	return once(all)
}

func once[T int | string](all []T) []T {
	slices.Sort(all)
	return slices.Compact(all)
}
