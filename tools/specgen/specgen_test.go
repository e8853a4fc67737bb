package main

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// parse returns the root mapping of a document, aliases resolved.
func parse(t *testing.T, text string) *yaml.Node {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	root, err := resolve(doc.Content[0])
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

func TestPublicJSONRefuses(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ name, in, want string }{
		{"a number that JSON cannot write", `{a: 0x10}`, "0x10"},
		{"infinity", `{a: .inf}`, ".inf"},
		{"a date that lacks quotes", `{a: 2026-09-23}`, "quote it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := publicJSON(parse(t, tt.in))
			wantError(t, err, tt.want)
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ name, in, want string }{
		{"a repeated key", "a: 1\nb: 2\na: 3", `line 3: key "a" is repeated`},
		{"a merge key", `{a: &x {b: 1}, c: {<<: *x}}`, "no merge keys"},
		{"an extended list", `{a: &x [1], b: {x-extends: *x}}`, "takes one mapping"},
		{"an x-extends that does not stand first", `{a: &x {b: 1}, c: {d: 1, x-extends: *x}}`, "stands first"},
		{"an alias inside what it stands for", `a: &x {b: *x}`, "contains itself"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var doc yaml.Node
			if err := yaml.Unmarshal([]byte(tt.in), &doc); err != nil {
				t.Fatal(err)
			}
			_, err := resolve(doc.Content[0])
			wantError(t, err, tt.want)
		})
	}
}

func TestAddErrorsRefuses(t *testing.T) {
	t.Parallel()

	const shared = `x-shared: {errors: {'404': {$ref: '#/n'}, default: {$ref: '#/d'}}}` + "\n"
	for _, tt := range []struct{ name, in, want string }{
		{"a status that x-shared lacks", `{responses: {'200': {}}, x-errors: [418]}`, "get /a: x-shared has no error response 418"},
		{"a status that is documented already", `{responses: {'404': {}}, x-errors: [404]}`, "get /a: response 404 is documented twice"},
		{"an operation without responses", `{x-errors: [404]}`, "get /a: no responses"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := read([]byte(shared + `paths: {/a: {get: ` + tt.in + `}}`))
			wantError(t, err, tt.want)
		})
	}
}

func TestOgenYAMLRefuses(t *testing.T) {
	t.Parallel()

	// S is used in a request and in a response.
	const both = "paths: {/a: {post: {tags: [A], requestBody: {$ref: '#/components/schemas/S'}, " +
		"responses: {'200': {$ref: '#/components/schemas/S'}}}}}\ncomponents: {schemas: {E: {enum: [a]}, S: "
	for _, tt := range []struct{ name, in, want string }{
		{"a time in both", both + `{properties: {t: {format: date-time}}}}}`, "this time is used"},
		{"an enum in an object of both", both + `{properties: {e: {enum: [a]}}}}}`, "this enum is used"},
		{
			"a reference to an enum in an object of both",
			both + `{properties: {e: {$ref: '#/components/schemas/E'}}}}}`, "this enum is used",
		},
		{
			"a default beside a reference",
			`components: {schemas: {S: {properties: {e: {$ref: '#/x', default: a}}}}}`, "a default beside it",
		},
		{
			"an object without a word on its fields",
			`components: {schemas: {S: {type: object}}}`, "needs additionalProperties",
		},
		{"an operation without a tag", `paths: {/a: {get: {responses: {}}}}`, "get /a: needs exactly one tag"},
		{
			"operations of one path under different tags",
			`paths: {/a: {get: {tags: [A]}, put: {tags: [B]}}}`, "different tags",
		},
		{
			"a raw operation beside another",
			`paths: {/a: {get: {tags: [A]}, put: {tags: [A], x-ogen-raw-response: true}}}`, "raw operations share",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			_, err := ogenYAML(parse(t, tt.in))
			wantError(t, err, tt.want)
		})
	}
}
