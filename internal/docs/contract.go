package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// contract is the OpenAPI document, as far as the pages show it.
type contract struct {
	Info struct {
		Title, Summary, Description string
	}
	Tags []struct {
		Name, Description string
	}
	Paths      ordered[ordered[json.RawMessage]]
	Webhooks   ordered[ordered[json.RawMessage]]
	Components struct {
		Schemas    map[string]*schema
		Parameters map[string]*parameter
		Responses  map[string]*response
		Examples   map[string]*example
	}

	operations []*operation // in the order of the tags
	events     []*operation // that webhooks receive
}

// ordered is a JSON object that keeps the order of its members.
type ordered[T any] struct {
	names  []string
	values map[string]T
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *ordered[T]) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &o.values); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return err
		}
		o.names = append(o.names, name.(string)) //nolint:forcetypeassert // the names of members are strings
	}
	return nil
}

type operation struct {
	OperationID          string `json:"operationId"`
	Summary, Description string
	Tags                 []string
	Deprecated           bool
	Security             []map[string][]string
	Parameters           []*parameter
	RequestBody          *body `json:"requestBody"`
	Responses            ordered[*response]

	method, path string
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name, In    string
	Description string
	Required    bool
	Schema      *schema
	Example     json.RawMessage
	Examples    ordered[*example]
}

type body struct {
	Required bool
	Content  ordered[media]
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     ordered[media]
}

type media struct {
	Schema   *schema
	Examples ordered[*example]
}

type example struct {
	Ref     string `json:"$ref"`
	Summary string
	Value   json.RawMessage
}

type schema struct {
	Ref                  string `json:"$ref"`
	Description          string
	Type                 oneOrMore
	Format, Pattern      string
	Properties           ordered[*schema]
	Required             []string
	Items                *schema
	OneOf, AnyOf, AllOf  []*schema
	Enum                 []json.RawMessage
	Const                json.RawMessage
	Known                []json.RawMessage `json:"x-extensible-enum"`
	Default              json.RawMessage
	Minimum, Maximum     *json.Number
	MinLength, MaxLength *int
	MinItems, MaxItems   *int
}

// oneOrMore is a string or a list of strings.
type oneOrMore []string

// UnmarshalJSON implements json.Unmarshaler.
func (o *oneOrMore) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(o))
	}
	*o = []string{""}
	return json.Unmarshal(text, &(*o)[0])
}

// methods are the methods of operations.
var methods = []string{"get", "post", "put", "patch", "delete"}

// readContract reads the OpenAPI document.
func readContract(document []byte) (*contract, error) {
	c := &contract{}
	if err := json.Unmarshal(document, c); err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	all, err := c.read(c.Paths)
	if err != nil {
		return nil, err
	}
	for _, tag := range c.Tags {
		for _, op := range all {
			if slices.Contains(op.Tags, tag.Name) {
				c.operations = append(c.operations, op)
			}
		}
	}
	if len(c.operations) != len(all) {
		return nil, fmt.Errorf("read the contract: %d operations have a known tag, want %d", len(c.operations), len(all))
	}
	c.events, err = c.read(c.Webhooks)
	return c, err
}

// read returns the operations of paths.
func (c *contract) read(paths ordered[ordered[json.RawMessage]]) (all []*operation, err error) {
	for _, path := range paths.names {
		item := paths.values[path]
		var shared []*parameter
		if text := item.values["parameters"]; text != nil {
			if err := json.Unmarshal(text, &shared); err != nil {
				return nil, fmt.Errorf("read the parameters of %s: %w", path, err)
			}
		}
		for _, method := range item.names {
			if !slices.Contains(methods, method) {
				continue
			}
			op := &operation{method: strings.ToUpper(method), path: path}
			if err := json.Unmarshal(item.values[method], op); err != nil {
				return nil, fmt.Errorf("read %s %s: %w", method, path, err)
			}
			op.Parameters = append(slices.Clone(shared), op.Parameters...)
			for i, p := range op.Parameters {
				if p.Ref != "" {
					op.Parameters[i] = c.Components.Parameters[lastPart(p.Ref)]
				}
			}
			for status, r := range op.Responses.values {
				if r.Ref != "" {
					op.Responses.values[status] = c.Components.Responses[lastPart(r.Ref)]
				}
			}
			all = append(all, op)
		}
	}
	return all, nil
}

// lastPart returns the name at the end of a reference.
func lastPart(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// resolve follows references. The description and default of the reference itself count
// more than those of what it refers to.
func (c *contract) resolve(s *schema) *schema {
	for s != nil && s.Ref != "" {
		to := c.Components.Schemas[lastPart(s.Ref)]
		if to == nil {
			return s
		}
		merged := *to
		if s.Description != "" {
			merged.Description = s.Description
		}
		if s.Default != nil {
			merged.Default = s.Default
		}
		s = &merged
	}
	return s
}

// firstExample returns the first example with a value, indented, or "". The contract has the
// smallest one first.
func (c *contract) firstExample(examples ordered[*example]) string {
	for _, name := range examples.names {
		e := examples.values[name]
		if e.Ref != "" {
			e = c.Components.Examples[lastPart(e.Ref)]
		}
		if e != nil && e.Value != nil {
			return indented(e.Value)
		}
	}
	return ""
}

func indented(text json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return out.String()
}

// scopes returns the scopes of the operation. A key needs one of them; with none, the
// operation needs no key.
func (op *operation) scopes() (scopes []string) {
	for _, one := range op.Security {
		for _, of := range one {
			scopes = append(scopes, of...)
		}
	}
	return scopes
}
