package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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

// scopes are all that a key can have.
var scopes = []string{
	"admin", "send", "read", "emails:send", "emails:read", "contacts:write", "contacts:read", "templates:write",
	"templates:read", "domains:write", "domains:read", "webhooks:manage", "keys:manage",
}

func contractText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(contractPath)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// formats makes kin-openapi check the formats that it knows by name only. The
// formats of one document would do, but do not reach its examples.
var formats = sync.OnceFunc(func() {
	openapi3.DefineStringFormatValidator("email", openapi3.NewRegexpFormatValidator(openapi3.FormatOfStringForEmail))
	openapi3.DefineStringFormatValidator("uri", openapi3.NewCallbackValidator(absoluteURI))
})

// validate loads a contract and checks it with all its examples.
func validate(text []byte) (*openapi3.T, error) {
	formats()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	return doc, doc.Validate(context.Background())
}

func absoluteURI(s string) error {
	u, err := url.Parse(s)
	if err == nil && !u.IsAbs() {
		err = fmt.Errorf("%q is not absolute", s)
	}
	return err
}

// operation is one operation with where it stands.
type operation struct {
	*openapi3.Operation
	name, path, method string
	shared             openapi3.Parameters
}

// contractOperations returns every operation under paths, sorted by path.
func contractOperations(t *testing.T) []operation {
	t.Helper()
	doc, err := validate(contractText(t))
	if err != nil {
		t.Fatal(err)
	}
	var ops []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			ops = append(ops, operation{op, method + " " + path, path, method, item.Parameters})
		}
	}
	slices.SortFunc(ops, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return ops
}

func TestContractIsValid(t *testing.T) {
	t.Parallel()

	doc, err := validate(contractText(t))
	if err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "1.0.0" {
		t.Errorf("openapi %s, version %s", doc.OpenAPI, doc.Info.Version)
	}
}

// The validator must look into examples, merged ones too, or the test above
// says nothing about them.
func TestContractExamplesAreChecked(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ name, old, bad string }{
		{"a request", `value: {to: ana@example.org, subject: Purchase order 1042,`, `value: {to: nobody, subject: X,`},
		{"an answer", `waited_ms: 812`, `waited_ms: soon`},
		{"a merged answer", `DeletedInbox: {value: {<<: *inbox, status: deleted,`, `DeletedInbox: {value: {<<: *inbox, status: 7,`},
		{"a format", `DeletedSuppression:
      value: {object: suppression, id: sup_01k5ttp7x3c9w6m2z8q1b4y5dn, email: gone@example.org`,
			`DeletedSuppression:
      value: {object: suppression, id: sup_01k5ttp7x3c9w6m2z8q1b4y5dn, email: gone`},
		{"a webhook", `data: {<<: *emailCancelled, html: null}`, `data: {<<: *emailCancelled, html: 7}`},
		{"an error", `{error: {code: unauthorized,`, `{error: {code: unheard_of,`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			text := contractText(t)
			if n := bytes.Count(text, []byte(tt.old)); n != 1 {
				t.Fatalf("%q stands %d times in the contract, want 1", tt.old, n)
			}
			if _, err := validate(bytes.Replace(text, []byte(tt.old), []byte(tt.bad), 1)); err == nil {
				t.Errorf("%q was not found out", tt.bad)
			}
		})
	}
}

// There is one webhook for each event type, and its example is of that type.
func TestWebhooksAreTheEventTypes(t *testing.T) {
	t.Parallel()

	doc, err := validate(contractText(t))
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

// Each operation has a name, a group, its scopes, examples, and every answer
// that its shape implies.
func TestOperations(t *testing.T) {
	t.Parallel()

	seen := map[string]bool{}
	for _, op := range contractOperations(t) {
		if op.OperationID == "" || seen[op.OperationID] {
			t.Errorf("%s: operationId %q is empty or taken", op.name, op.OperationID)
		}
		seen[op.OperationID] = true
		for _, fault := range slices.Concat(op.scopeFaults(), op.exampleFaults(), op.answerFaults()) {
			t.Errorf("%s: %s", op.name, fault)
		}
	}
	if len(seen) != 73 {
		t.Errorf("%d operations, want 73", len(seen))
	}
}

// roles returns the scopes of which one is needed; ok is false without a key.
func (op operation) roles() (roles []string, ok bool) {
	if op.Security == nil || len(*op.Security) == 0 {
		return nil, false
	}
	return (*op.Security)[0]["bearerAuth"], true
}

func (op operation) scopeFaults() (faults []string) {
	if op.Security == nil {
		return []string{"no security, not even an empty one"}
	}
	roles, keyed := op.roles()
	for _, r := range roles {
		if !slices.Contains(scopes, r) {
			faults = append(faults, "unknown scope "+r)
		}
		if area, ok := strings.CutSuffix(r, ":read"); ok && area != "emails" && !slices.Contains(roles, area+":write") {
			faults = append(faults, r+" without "+area+":write, which implies it")
		}
		if r == "emails:send" && !slices.Contains(roles, "send") || strings.HasSuffix(r, ":read") && !slices.Contains(roles, "read") {
			faults = append(faults, r+" without the scope that includes it")
		}
	}
	if keyed && op.OperationID != "callMcp" && !slices.Contains(roles, "admin") {
		faults = append(faults, "closed to admin")
	}
	return faults
}

func (op operation) exampleFaults() (faults []string) {
	if op.RequestBody != nil {
		if media := op.RequestBody.Value.Content["application/json"]; media == nil || len(media.Examples) == 0 {
			faults = append(faults, "the body has no example")
		}
	}
	for status, r := range op.Responses.Map() {
		if status[0] != '2' {
			continue
		}
		for kind, media := range r.Value.Content {
			if media.Example == nil && len(media.Examples) == 0 {
				faults = append(faults, status+" has no example of "+kind)
			}
		}
	}
	return faults
}

func (op operation) answerFaults() (faults []string) {
	need := map[string]bool{"default": true}
	_, keyed := op.roles()
	body := op.RequestBody != nil
	replayable := op.has("header", "Idempotency-Key")
	for _, status := range []string{"401", "403", "429", "503"} {
		need[status] = keyed
	}
	need["400"] = body || op.hasAny("query")
	need["404"] = op.hasAny("path")
	need["413"], need["415"] = body, body
	if replayable {
		need["409"], need["422"] = true, true
	}
	for status, must := range need {
		if must && op.Responses.Value(status) == nil {
			faults = append(faults, "does not document "+status)
		}
	}
	for status, r := range op.Responses.Map() {
		h := r.Value.Headers
		if h["X-Request-Id"] == nil {
			faults = append(faults, status+" lacks X-Request-Id")
		}
		if status[0] == '2' && (h["RateLimit-Reset"] != nil) != keyed {
			faults = append(faults, status+": rate limit headers go with keys")
		}
		if status[0] == '2' && (h["Idempotent-Replayed"] != nil) != replayable {
			faults = append(faults, status+": Idempotent-Replayed goes with Idempotency-Key")
		}
	}
	return faults
}

func (op operation) has(in, name string) bool {
	return op.Parameters.GetByInAndName(in, name) != nil || op.shared.GetByInAndName(in, name) != nil
}

func (op operation) hasAny(in string) bool {
	return slices.ContainsFunc(slices.Concat(op.Parameters, op.shared), func(p *openapi3.ParameterRef) bool {
		return p.Value.In == in
	})
}

// Unknown fields are refused: nothing that a caller sends is dropped in
// silence.
func TestRequestBodiesAreClosed(t *testing.T) {
	t.Parallel()

	root := parse(t, string(contractText(t)))
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

// A reference points at something, and every component is used. What only an
// unused component uses is not used.
func TestReferences(t *testing.T) {
	t.Parallel()

	root := parse(t, string(contractText(t)))
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
			continue // named, not referenced; the validator looks after it
		}
		for name, c := range pairs(components) {
			if !used[c] {
				t.Errorf("%s %s is not used", kind, name)
			}
		}
	}
}

// references returns the references that a mapping holds itself.
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

// What specgen writes into gen/ is what the contract says today. ogen's part
// takes longer and is checked by make check-generated.
func TestGeneratedFilesAreFresh(t *testing.T) {
	t.Parallel()

	out, err := generate(contractText(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]byte{
		"openapi.json": out.openapiJSON, "openapi.go": out.openapiGo, "values.go": out.valuesGo,
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

// The served document stands by itself: plain OpenAPI, with nothing of ours.
func TestServedDocument(t *testing.T) {
	t.Parallel()

	served, err := os.ReadFile(filepath.Join(genPath, "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := validate(served); err != nil {
		t.Error(err)
	}
	for _, ours := range []string{`"x-ogen-`, `"` + sharedKey, `"<<"`} {
		if bytes.Contains(served, []byte(ours)) {
			t.Errorf("it holds %s", ours)
		}
	}
}
