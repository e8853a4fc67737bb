package contract_test

import (
	"maps"
	"regexp"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// schemas are all that may say something about one place of a body: those of
// the alternatives too, since which of them holds depends on the value.
type schemas []*openapi3.Schema

// schemasOf are a schema and those that it is made of.
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

// member is what the schemas say of a member of an object.
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

// item is what the schemas say of an item of a list.
func (s schemas) item() schemas {
	var all schemas
	for _, schema := range s {
		all = append(all, schemasOf(schema.Items)...)
	}
	return all
}

// names are those of the members that the schemas know, in order.
func (s schemas) names() []string {
	all := map[string]bool{}
	for _, schema := range s {
		for name := range schema.Properties {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// open says whether members may have any name that a pattern allows.
func (s schemas) open() bool {
	return slices.ContainsFunc(s, func(schema *openapi3.Schema) bool { return len(schema.PatternProperties) > 0 })
}

// bounds are the least and the most of something that a schema takes.
type bounds func(*openapi3.Schema) (least uint64, most *uint64)

func textBounds(s *openapi3.Schema) (uint64, *uint64)   { return s.MinLength, s.MaxLength }
func itemBounds(s *openapi3.Schema) (uint64, *uint64)   { return s.MinItems, s.MaxItems }
func memberBounds(s *openapi3.Schema) (uint64, *uint64) { return s.MinProps, s.MaxProps }

// sizes are those that the schemas make a difference for: at the limits, and
// just over them.
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

// numbers are those that the schemas make a difference for.
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

// words are the values of the schemas' enums.
func (s schemas) words() []any {
	var all []any
	for _, schema := range s {
		all = append(all, schema.Enum...)
	}
	return all
}

// formats are the formats that the schemas want.
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
