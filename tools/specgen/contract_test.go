package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const (
	contractPath = "../../openapi.yaml"
	genPath      = "../../gen"
)

func contractText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(contractPath)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// contractRoot returns the contract with its shorthands expanded.
func contractRoot(t *testing.T) *yaml.Node {
	t.Helper()
	root, err := read(contractText(t))
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// formats makes kin-openapi validate formats that it otherwise knows only by
// name. Formats of a single document would not apply to its examples.
var formats = sync.OnceFunc(func() {
	openapi3.DefineStringFormatValidator("email", openapi3.NewRegexpFormatValidator(openapi3.FormatOfStringForEmail))
	openapi3.DefineStringFormatValidator("uri", openapi3.NewCallbackValidator(absoluteURI))
})

// validateYAML validates the served document of a contract.
func validateYAML(text []byte) (*openapi3.T, error) {
	out, err := generate(text)
	if err != nil {
		return nil, err
	}
	return validate(out.openapiJSON)
}

// validate loads a document and validates it with all its examples.
func validate(text []byte) (*openapi3.T, error) {
	formats()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
}

// contract is the contract, loaded once for all tests, which do not change it.
var contract = sync.OnceValues(func() (*openapi3.T, error) {
	text, err := os.ReadFile(contractPath)
	if err != nil {
		return nil, err
	}
	return validateYAML(text)
})

func absoluteURI(s string) error {
	u, err := url.Parse(s)
	if err == nil && !u.IsAbs() {
		err = fmt.Errorf("%q is not absolute", s)
	}
	return err
}

func TestContractIsValid(t *testing.T) {
	t.Parallel()

	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.0.0" {
		t.Errorf("openapi %s, version %s", doc.OpenAPI, doc.Info.Version)
	}
}

// There is one webhook for each event type, and its example is of that type.
func TestWebhooksAreTheEventTypes(t *testing.T) {
	t.Parallel()

	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]bool{}
	for _, v := range doc.Components.Schemas["EventType"].Value.Enum {
		types[v.(string)] = true
	}
	examples := map[string]bool{}
	for name, item := range doc.Webhooks {
		example := item.Post.RequestBody.Value.Content["application/json"].Example.(map[string]any)
		if example["type"] != name {
			t.Errorf("%s: its example is of type %v", name, example["type"])
		}
		examples[name] = true
	}
	if d := cmp.Diff(types, examples); d != "" {
		t.Errorf("-event types +webhooks:\n%s", d)
	}
}

// Unknown fields are refused, so that no input is ignored silently.
func TestRequestBodiesAreClosed(t *testing.T) {
	t.Parallel()

	root := contractRoot(t)
	schemas := get(root, "components", "schemas")
	u := uses(root)
	closed := 0
	for name, s := range pairs(schemas) {
		if !u.requests[s] || str(s, "type") != "object" || name == "FreeObject" {
			continue
		}
		if str(s, "additionalProperties") != "false" {
			t.Errorf("%s takes unknown fields", name)
		}
		closed++
	}
	if closed == 0 {
		t.Error("no request bodies found")
	}
}

// Every reference has a target, and every component is used, directly or through
// used components.
func TestReferences(t *testing.T) {
	t.Parallel()

	root := contractRoot(t)
	used := map[*yaml.Node]bool{}
	var follow func(n *yaml.Node)
	follow = func(n *yaml.Node) {
		walk(n, func(m *yaml.Node) {
			for _, ref := range references(m) {
				target := deref(root, ref)
				if target == nil {
					t.Errorf("line %d: %s is nowhere", m.Line, ref)
				} else if !used[target] {
					used[target] = true
					follow(target)
				}
			}
		})
	}
	follow(get(root, "paths"))
	follow(get(root, "webhooks"))
	for kind, components := range pairs(get(root, "components")) {
		if kind == "securitySchemes" {
			continue // named, not referenced; the validator checks it
		}
		for name, c := range pairs(components) {
			if !used[c] {
				t.Errorf("%s %s is not used", kind, name)
			}
		}
	}
}

// references returns the direct references of a mapping.
func references(m *yaml.Node) []string {
	var refs []string
	if ref := str(m, "$ref"); ref != "" {
		refs = append(refs, ref)
	}
	for _, ref := range pairs(get(m, "discriminator", "mapping")) {
		refs = append(refs, ref.Value)
	}
	return refs
}

// The files in gen/ match the contract. The output of ogen is checked by make
// check-generated.
func TestGeneratedFilesAreFresh(t *testing.T) {
	t.Parallel()

	out, err := generate(contractText(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{
		"openapi.json": out.openapiJSON, "openapi.json.gz": out.openapiGzip, "openapi.go": out.openapiGo, "values.go": out.valuesGo, "inbox_ids.go": out.inboxIDsGo,
	} {
		got, err := os.ReadFile(filepath.Join(genPath, name))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("gen/%s is old, run make generate: -want +got:\n%s", name, d)
		}
	}
}

// The served document is plain OpenAPI without our extensions.
func TestServedDocument(t *testing.T) {
	t.Parallel()

	served, err := os.ReadFile(filepath.Join(genPath, "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := validate(served); err != nil {
		t.Error(err)
	}
	for _, ours := range []string{`"x-ogen-`, `"` + sharedKey, `"` + errorsKey, `"` + extendsKey} {
		if bytes.Contains(served, []byte(ours)) {
			t.Errorf("it holds %s", ours)
		}
	}
}

// The served document suits generators of clients: responses may hold new values
// except to select a variant, no rule needs a type without fields, and patterns hold only characters that
// every language can write.
func TestServedDocumentIsForGenerators(t *testing.T) {
	t.Parallel()

	served, err := os.ReadFile(filepath.Join(genPath, "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	root := parse(t, string(served))
	u, selecting := uses(root), selectors(root)
	open := 0
	walk(root, func(n *yaml.Node) {
		if u.responses[n] && !u.requests[n] && !selecting[n] && isEnum(n) {
			t.Errorf("line %d: an enum in a response: %s", n.Line, str(n, "description"))
		}
		if target := deref(root, str(n, "$ref")); u.responses[n] && !u.requests[n] && target != nil && isEnum(target) {
			t.Errorf("line %d: a response refers to an enum: %s", n.Line, str(n, "$ref"))
		}
		if values := get(n, knownValuesKey); values != nil {
			open++
			if !mentions(str(n, "description"), values) {
				t.Errorf("line %d: the description does not list the values: %s", n.Line, str(n, "description"))
			}
		}
		for key, value := range pairs(n) {
			if isRequiredChoice(key, value) {
				t.Errorf("line %d: an anyOf of required fields", n.Line)
			}
		}
		if pattern := str(n, "pattern"); strings.ContainsAny(pattern, "\u2028\u2029") || strings.Contains(pattern, lineSeparators) {
			t.Errorf("line %d: a line separator in the pattern %q", n.Line, pattern)
		}
	})
	if open < 40 {
		t.Errorf("only %d open enums", open)
	}
}
