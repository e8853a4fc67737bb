package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// diffYAML compares a node with the expected text.
func diffYAML(t *testing.T, want string, got *yaml.Node) {
	t.Helper()
	text, err := yaml.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if err := yaml.Unmarshal([]byte(want), &a); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestPublicJSON(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, in, want string }{
		{"keeps the order of keys", `{b: 1, a: 2}`, `{"b":1,"a":2}`},
		{
			"drops what only our tools read", `{x-shared: {a: &a 1}, x-ogen-name: X, b: [{x-ogen-raw-response: true, c: *a}]}`,
			`{"b":[{"c":1}]}`,
		},
		{"keeps other extensions", `{x-logo: a}`, `{"x-logo":"a"}`},
		{"keeps numbers as written", `{a: 12345678901234567890, b: 1.50}`, `{"a":12345678901234567890,"b":1.50}`},
		{"keeps quoted numbers strings", `{a: '1', '200': b}`, `{"a":"1","200":"b"}`},
		{"keeps html as it is", `{a: '<p>&</p>'}`, `{"a":"<p>&</p>"}`},
		{"writes null, true and empty collections", `{a: null, b: true, c: {}, d: []}`, `{"a":null,"b":true,"c":{},"d":[]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := publicJSON(parse(t, tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, strings.NewReplacer("\n", "", "  ", "", `": `, `":`).Replace(string(got))); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			if !json.Valid(got) {
				t.Errorf("not JSON: %s", got)
			}
		})
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

func TestResolve(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, in, want string }{
		{"an alias becomes what it names", `{a: &x {b: 1}, c: *x}`, `{a: {b: 1}, c: {b: 1}}`},
		{"an extended mapping brings keys", `{a: &x {b: 1, c: 2}, d: {x-extends: *x, e: 3}}`, `{a: {b: 1, c: 2}, d: {b: 1, c: 2, e: 3}}`},
		{"own keys win over those of the extended mapping", `{a: &x {b: 1, c: 2}, d: {x-extends: *x, b: 3}}`, `{a: {b: 1, c: 2}, d: {b: 3, c: 2}}`},
		{"an empty value is null", "a:\nb: ~", `{a: null, b: null}`},
		{"extensions nest", `{a: &x {b: 1}, c: &y {x-extends: *x, d: 2}, e: {x-extends: *y, b: 3}}`, `{a: {b: 1}, c: {b: 1, d: 2}, e: {b: 3, d: 2}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			diffYAML(t, tt.want, parse(t, tt.in))
		})
	}
}

// An extended mapping is a copy: a change in one place does not show in another.
func TestResolveCopies(t *testing.T) {
	t.Parallel()

	root := parse(t, `{a: &x {b: {c: 1}}, d: *x, e: {x-extends: *x}}`)
	set(get(root, "d", "b"), "c", scalar("changed"))
	diffYAML(t, `{a: {b: {c: 1}}, d: {b: {c: changed}}, e: {b: {c: 1}}}`, root)
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

func TestAddErrors(t *testing.T) {
	t.Parallel()

	const shared = `x-shared: {errors: {'404': {$ref: '#/n'}, default: {$ref: '#/d'}}}` + "\n"
	got, err := read([]byte(shared + `paths: {/a: {get: {responses: {'200': {}}, x-errors: [404]}, put: {responses: {'200': {}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	dropKeys(got, sharedKey)
	diffYAML(t, `paths: {/a: {get: {responses: {'200': {}, '404': {$ref: '#/n'}, default: {$ref: '#/d'}}},
 put: {responses: {'200': {}, default: {$ref: '#/d'}}}}}`, got)

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

// A contract with one example of everything that the ogen input changes.
const small = `
openapi: 3.1.0
x-shared: {h: &h {X-Request-Id: {$ref: '#/components/headers/X-Request-Id'}}}
paths:
  /things:
    post:
      tags: [Things]
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/ThingCreate'}}}}
      responses:
        '200':
          headers: *h
          content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}}}
        '302': {headers: {Location: {schema: {type: string}}, X-Request-Id: {$ref: '#/components/headers/X-Request-Id'}}}
        '404': {$ref: '#/components/responses/NotFound'}
        '503': {description: written in place}
        default: {$ref: '#/components/responses/Error'}
  /stream:
    get:
      tags: [Events]
      responses: {'200': {content: {text/event-stream: {x-ogen-raw-response: true, schema: {type: string}}}}}
components:
  schemas:
    Color: {type: string, enum: [red, light_blue]}
    Size: {type: string, enum: [s, m]}
    ThingCreate:
      type: object
      anyOf: [{required: [color]}, {required: [at]}]
      properties:
        color: {$ref: '#/components/schemas/Color'}
        at: {type: string, format: date-time}
        name: {type: string, maxLength: 9}
        labels: {$ref: '#/components/schemas/Labels'}
    Labels: {type: object, maxProperties: 5, patternProperties: {'^a+$': {type: string, maxLength: 9}}, additionalProperties: false}
    Thing:
      type: object
      properties:
        color: {$ref: '#/components/schemas/Color', description: of paint}
        size: {$ref: '#/components/schemas/Size'}
        kind: {type: string, enum: [a, b]}
        made_at: {type: string, format: date-time}
        name: {type: string, maxLength: 9, pattern: '^a+$'}
        by: {type: string, format: email, maxLength: 254}
        labels: {$ref: '#/components/schemas/Labels'}
        pattern: {type: [integer, 'null'], maximum: 3}
webhooks: {thing.made: {post: {}}}
`

func TestOgenYAML(t *testing.T) {
	t.Parallel()

	got, err := ogenYAML(parse(t, small))
	if err != nil {
		t.Fatal(err)
	}
	diffYAML(t, `
openapi: 3.1.0
paths:
  /things:
    post:
      tags: [Things]
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/ThingCreate'}}}}
      responses:
        '200':
          content: {application/json: {schema: {$ref: '#/components/schemas/Thing'}, x-ogen-json-streaming: true}}
        '302': {headers: {Location: {schema: {type: string}}}}
        '503': {description: written in place}
        default: {$ref: '#/components/responses/Error'}
    x-ogen-operation-group: Things
  /stream:
    get:
      tags: [Events]
      responses: {'200': {content: {text/event-stream: {x-ogen-raw-response: true, schema: {type: string}}}}}
components:
  schemas:
    Color: {type: string, enum: [red, light_blue]}
    Size: {type: string, enum: [s, m]}
    ThingCreate:
      type: object
      properties:
        color: {$ref: '#/components/schemas/Color'}
        at: {type: string, format: date-time, x-ogen-time-format: '2006-01-02T15:04:05.999Z07:00'}
        name: {type: string, maxLength: 9}
        labels: {$ref: '#/components/schemas/Labels'}
    Labels: {type: object, maxProperties: 5, patternProperties: {'^a+$': {type: string, maxLength: 9}}, additionalProperties: false}
    Thing:
      type: object
      properties:
        color: {type: string, description: of paint}
        size: {type: string}
        kind: {type: string}
        made_at: {type: string, format: date-time, x-ogen-time-format: '2006-01-02T15:04:05.000Z07:00'}
        name: {type: string}
        by: {type: string}
        labels: {$ref: '#/components/schemas/LabelsResponse'}
        pattern: {type: [integer, 'null']}
    LabelsResponse: {type: object, additionalProperties: {type: string}}
`, parse(t, string(got)))
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

func TestValuesGo(t *testing.T) {
	t.Parallel()

	got, err := valuesGo(parse(t, small))
	if err != nil {
		t.Fatal(err)
	}
	const want = header + `package gen

// Values of Size in this version. Responses of a later version may contain others.
const (
	SizeS = "s"
	SizeM = "m"
)
`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestGoName(t *testing.T) {
	t.Parallel()

	for in, want := range map[string]string{
		"ErrorCode": "ErrorCode", "ip_not_allowed": "IPNotAllowed", "ApiKeyMode": "APIKeyMode",
		"domain.health.degraded": "DomainHealthDegraded", "emails:send": "EmailsSend", "RETURN_PATH": "RETURNPATH",
	} {
		if got := goName(in); got != want {
			t.Errorf("goName(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestGenerateIsDeterministic(t *testing.T) {
	t.Parallel()

	first, err := generate([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		again, err := generate([]byte(small))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(first, again, cmp.AllowUnexported(outputs{})); d != "" {
			t.Fatalf("-first +again:\n%s", d)
		}
	}
}
