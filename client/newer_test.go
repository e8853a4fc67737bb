package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
)

// newerServer responds to each operation with its example in the contract,
// changed as in a newer version: more fields, unknown enum values, and numbers
// and texts beyond today's limits.
type newerServer struct {
	doc     contractDoc
	op      string // the requested operation
	changes map[string]int
}

// BearerAuth implements gen.SecuritySource and records the operation.
func (s *newerServer) BearerAuth(_ context.Context, op gen.OperationName) (gen.BearerAuth, error) {
	s.op = op
	return gen.BearerAuth{Token: "sk_live_1"}, nil
}

// Do implements the HTTP client of the generated client.
func (s *newerServer) Do(*http.Request) (*http.Response, error) {
	for _, ops := range s.doc.Paths {
		for _, op := range ops {
			if strings.EqualFold(op.OperationID, s.op) {
				return s.respond(op)
			}
		}
	}
	return nil, fmt.Errorf("no operation %s", s.op)
}

func (s *newerServer) respond(op contractOp) (*http.Response, error) {
	for _, status := range []int{200, 201, 202} {
		res := s.deref(op.Responses[fmt.Sprint(status)])
		media, ok := at(res, "content", "application/json").(map[string]any)
		if !ok {
			continue
		}
		examples, _ := media["examples"].(map[string]any)
		for _, e := range examples {
			value := s.change(at(s.deref(e), "value"), media["schema"])
			body, err := json.Marshal(value)
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body))}, err
		}
	}
	return nil, errNoExample
}

var errNoExample = fmt.Errorf("no example of a response")

func at(v any, keys ...string) any {
	for _, key := range keys {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

// deref resolves a reference to a component.
func (s *newerServer) deref(v any) any {
	ref, ok := at(v, "$ref").(string)
	if !ok {
		return v
	}
	name := ref[strings.LastIndex(ref, "/")+1:]
	for _, components := range []map[string]any{s.doc.Components.Schemas, s.doc.Components.Examples, s.doc.Components.Responses} {
		if c, ok := components[name]; ok && strings.Contains(ref, kindOf(components, s.doc)) {
			return s.deref(c)
		}
	}
	return nil
}

func kindOf(components map[string]any, doc contractDoc) string {
	switch reflect.ValueOf(components).Pointer() {
	case reflect.ValueOf(doc.Components.Schemas).Pointer():
		return "/schemas/"
	case reflect.ValueOf(doc.Components.Examples).Pointer():
		return "/examples/"
	}
	return "/responses/"
}

// change returns a value as a newer server might send it.
func (s *newerServer) change(value, schema any) any {
	schema = s.deref(schema)
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		parts, _ := at(schema, key).([]any)
		for _, p := range parts {
			if at(s.deref(p), "type") != "null" {
				value = s.change(value, p)
			}
		}
	}
	switch v := value.(type) {
	case string:
		if at(schema, "x-extensible-enum") != nil {
			s.changes["enum"]++
			return "brand_new"
		}
		if n, ok := at(schema, "maxLength").(float64); ok && at(schema, "format") == nil {
			s.changes["text"]++
			return strings.Repeat("x", int(n)+1)
		}
	case float64:
		if n, ok := at(schema, "maximum").(float64); ok {
			s.changes["number"]++
			return n + 1
		}
	case []any:
		for i := range v {
			v[i] = s.change(v[i], at(schema, "items"))
		}
	case map[string]any:
		properties, ok := at(schema, "properties").(map[string]any)
		for name := range properties {
			if _, there := v[name]; there {
				v[name] = s.change(v[name], properties[name])
			}
		}
		if n, limited := at(schema, "maxProperties").(float64); limited { // fields with any name
			for i := range int(n) + 1 {
				v[fmt.Sprintf("%0100d", i)] = "x"
			}
			s.changes["fields"]++
		}
		if ok {
			v["brand_new"] = map[string]any{"a": []any{1, nil}}
			s.changes["field"]++
		}
	}
	return value
}

// The client can read the response of a newer server to every operation.
func TestResponsesOfNewerServersAreRead(t *testing.T) {
	t.Parallel()
	s := &newerServer{doc: contractOf(t), changes: map[string]int{}}
	api, err := gen.NewClient("http://127.0.0.1", s, gen.WithClient(s))
	if err != nil {
		t.Fatal(err)
	}
	c, read := reflect.ValueOf(api), 0
	for i := range c.NumMethod() {
		name, m := c.Type().Method(i).Name, c.Method(i)
		in := []reflect.Value{reflect.ValueOf(t.Context())}
		for j := 1; j < m.Type().NumIn()-1; j++ { // the last parameters are options
			v := reflect.New(m.Type().In(j)).Elem()
			if v.Kind() == reflect.Pointer {
				v.Set(reflect.New(v.Type().Elem()))
			}
			in = append(in, v)
		}
		s.op = name // for operations without a key
		out := m.Call(in)
		switch err, _ := reflect.TypeAssert[error](out[len(out)-1]); {
		case err != nil && strings.Contains(err.Error(), errNoExample.Error()):
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			read++
		}
	}
	if read < 60 || s.changes["enum"] < 50 || s.changes["field"] < 100 || s.changes["fields"] == 0 || s.changes["number"] == 0 || s.changes["text"] == 0 {
		t.Errorf("read %d responses with %v changes", read, s.changes)
	}
	t.Logf("read %d responses with changes %v", read, s.changes)
}

// The client passes on a newer event with all its fields.
func TestUnknownEventTypesAreKept(t *testing.T) {
	t.Parallel()
	text := []byte(`{"id":"evt_1","type":"inbox.renamed","created_at":"2026-01-02T03:04:05Z","data":{"object":"inbox","new":[1]},"why":"x"}`)
	e, err := parseEvent(text)
	if err != nil || e.Type != "inbox.renamed" || string(e.JSON) != string(text) {
		t.Errorf("%+v %v", e, err)
	}
	if m, err := e.Message(); err == nil || m != nil {
		t.Errorf("it is read as a message: %v", m)
	}
}
