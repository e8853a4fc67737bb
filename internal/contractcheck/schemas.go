package contractcheck

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas are the schemas of bodies, each compiled once. kin-openapi compiles a schema for
// each value, which takes most of the time of a test.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

const schemaBase = "https://contract.example/openapi.json"

// newSchemas returns the schemas of a document. As a client sees them, some enums are open.
func newSchemas(doc *openapi3.T, asClient bool) (*schemas, error) {
	text, err := doc.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("read the schemas: %w", err)
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the schemas: %w", err)
	}
	if asClient {
		openEnums(resource)
	}
	s := &schemas{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	s.compiler.DefaultDraft(jsonschema.Draft2020)
	s.compiler.AssertFormat()
	for name, check := range map[string]func(string) error{
		"email": openapi3.SchemaStringFormats["email"].Validate, "uri": absoluteURI, "byte": paddedBase64, "date-time": moment,
	} {
		s.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			if text, isText := v.(string); isText {
				return check(text)
			}
			return nil
		}})
	}
	return s, s.compiler.AddResource(schemaBase, resource)
}

// openEnums removes the enums whose values a client does not check.
func openEnums(v any) {
	switch v := v.(type) {
	case map[string]any:
		if v[openKey] == true {
			delete(v, "enum")
		}
		for _, member := range v {
			openEnums(member)
		}
	case []any:
		for _, item := range v {
			openEnums(item)
		}
	}
}

func paddedBase64(s string) error {
	_, err := base64.StdEncoding.DecodeString(s)
	return err
}

// check checks a JSON text against the schema at a JSON pointer.
func (s *schemas) check(pointer string, text []byte) error {
	schema, err := s.at(pointer)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	return schema.Validate(v)
}

func (s *schemas) at(pointer string) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if schema := s.compiled[pointer]; schema != nil {
		return schema, nil
	}
	schema, err := s.compiler.Compile(schemaBase + pointer)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", pointer, err)
	}
	s.compiled[pointer] = schema
	return schema, nil
}

// pointerForm escapes a name for a JSON pointer in a URL.
var pointerForm = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// under returns the JSON pointer of the object at these names below base.
func under(base string, names ...string) string {
	for _, n := range names {
		base += "/" + pointerForm.Replace(n)
	}
	return base
}

// pointer returns the JSON pointer of the operation.
func (op *Operation) pointer() string {
	return under("#", "paths", op.Path, strings.ToLower(op.Method))
}

// checkBody checks the body of a request against the operation.
func (s *schemas) checkBody(op *Operation, h http.Header, body []byte) error {
	if op.RequestBody == nil {
		return nil
	}
	wanted := op.RequestBody.Value
	if len(body) == 0 {
		if wanted.Required {
			return errors.New("the body is missing")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil || wanted.Content[kind] == nil {
		return fmt.Errorf("the body is of type %q", h.Get("Content-Type"))
	}
	base := pointerOf(op.RequestBody.Ref, op.pointer()+"/requestBody")
	return s.check(under(base, "content", kind, "schema"), body)
}

// checkResponse checks the body of a response against the documentation of its status. continues
// means that the response continues and has no complete body.
func (s *schemas) checkResponse(op *Operation, res *http.Response, responseBody []byte, continues bool) error {
	key := fmt.Sprint(res.StatusCode)
	documented := op.Responses.Value(key)
	if documented == nil {
		key = "default"
		documented = op.Responses.Default()
	}
	content := documented.Value.Content
	if len(content) == 0 {
		return nil
	}
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || content[kind] == nil {
		return fmt.Errorf("the body is of type %q", res.Header.Get("Content-Type"))
	}
	if continues || kind != "application/json" {
		return nil // any bytes are allowed
	}
	base := pointerOf(documented.Ref, under(op.pointer(), "responses", key))
	return s.check(under(base, "content", kind, "schema"), responseBody)
}
