package contractcheck

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// field is a parameter or a header: a text with a schema. Fields are checked here, because
// kin-openapi compiles the schema of a field for each value.
type field struct {
	in, name string // in is "path", "query" or "header"
	required bool
	pointer  string // JSON pointer of its schema
	kind     string // type of its values: "string", "integer", "number" or "boolean"
	list     bool   // several values, separated by commas
}

// newField reads a field from the contract. It returns an error for a field that it cannot
// check, so that no check is missing when the contract grows.
func newField(in, name, pointer string, p *openapi3.Parameter) (field, error) {
	f := field{in: in, name: name, required: p.Required, pointer: pointer}
	if p.Schema == nil || p.Content != nil {
		return f, fmt.Errorf("%s %s has no schema", in, name)
	}
	schema := p.Schema.Value
	if schema.Type.Is("array") && schema.Items != nil {
		if p.Style != "form" || p.Explode == nil || *p.Explode {
			return f, fmt.Errorf("%s %s is a list that is not separated by commas", in, name)
		}
		f.list, schema = true, schema.Items.Value
	}
	for _, kind := range []string{"string", "integer", "number", "boolean"} {
		if schema.Type.Is(kind) {
			f.kind = kind
			return f, nil
		}
	}
	return f, fmt.Errorf("%s %s is neither a string, a number, a boolean nor a list of these", in, name)
}

// value converts the text of a field to its JSON value.
func (f field) value(text string) (any, error) {
	if !f.list {
		return f.one(text)
	}
	values := []any{}
	for part := range strings.SplitSeq(text, ",") {
		v, err := f.one(part)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

func (f field) one(text string) (any, error) {
	var err error
	switch f.kind {
	case "integer":
		_, err = strconv.ParseInt(text, 10, 64)
	case "number":
		_, err = strconv.ParseFloat(text, 64)
	case "boolean":
		return strconv.ParseBool(text)
	default:
		return text, nil
	}
	return json.Number(text), err
}

// checkField checks the text of a field against its schema. given is false if the field is
// absent.
func (s *schemas) checkField(f field, text string, given bool) error {
	if !given {
		if f.required {
			return fmt.Errorf("%s %s is missing", f.in, f.name)
		}
		return nil
	}
	v, err := f.value(text)
	if err != nil {
		return fmt.Errorf("%s %s is %q, want a value of type %s", f.in, f.name, text, f.kind)
	}
	schema, err := s.at(f.pointer)
	if err == nil {
		err = schema.Validate(v)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", f.in, f.name, err)
	}
	return nil
}

// readFields reads the parameters of the operation and the headers of each of its
// responses.
func (op *Operation) readFields() error {
	if err := op.readParams(under("#", "paths", op.Path), op.Shared, op.Parameters); err != nil {
		return err
	}
	if err := op.readParams(op.pointer(), op.Parameters, nil); err != nil {
		return err
	}
	op.headers = map[string][]field{}
	for status, ref := range op.Responses.Map() {
		base := pointerOf(ref.Ref, under(op.pointer(), "responses", status))
		for name, header := range ref.Value.Headers {
			f, err := newField("header", name, pointerTo(header.Ref, under(base, "headers", name)), &header.Value.Parameter)
			if err != nil {
				return fmt.Errorf("%s %s: %w", op.OperationID, status, err)
			}
			op.headers[status] = append(op.headers[status], f)
		}
	}
	return nil
}

// readParams reads the parameters below base, except for those that are repeated in again.
func (op *Operation) readParams(base string, params, again openapi3.Parameters) error {
	for i, ref := range params {
		p := ref.Value
		if again.GetByInAndName(p.In, p.Name) != nil {
			continue
		}
		f, err := newField(p.In, p.Name, pointerTo(ref.Ref, under(base, "parameters", strconv.Itoa(i))), p)
		if err != nil {
			return fmt.Errorf("%s: %w", op.OperationID, err)
		}
		op.params = append(op.params, f)
	}
	return nil
}

// pointerOf returns the JSON pointer of an object: ref if it is a reference, otherwise here.
func pointerOf(ref, here string) string { return cmp.Or(ref, here) }

func pointerTo(ref, here string) string { return under(pointerOf(ref, here), "schema") }

// checkParams checks the parameters of a request against the operation.
func (s *schemas) checkParams(op *Operation, req *http.Request, path map[string]string) error {
	query := req.URL.Query()
	var faults []error
	for _, f := range op.params {
		var values []string
		switch f.in {
		case "path":
			if v, given := path[f.name]; given {
				values = []string{v}
			}
		case "query":
			values = query[f.name]
		case "header":
			values = req.Header.Values(f.name)
		default:
			faults = append(faults, fmt.Errorf("parameters in %s are not checked", f.in))
			continue
		}
		text := slices.Concat(values, []string{""})[0]
		faults = append(faults, s.checkField(f, text, len(values) > 0))
	}
	return errors.Join(faults...)
}

// checkHeaders checks the headers of a response against the documentation of its status.
func (s *schemas) checkHeaders(op *Operation, res *http.Response) error {
	fields, documented := op.headers[strconv.Itoa(res.StatusCode)]
	if !documented && op.Responses.Value(strconv.Itoa(res.StatusCode)) == nil {
		fields = op.headers["default"]
	}
	var faults []error
	for _, f := range fields {
		values := res.Header.Values(f.name)
		faults = append(faults, s.checkField(f, strings.Join(values, ", "), len(values) > 0))
	}
	return errors.Join(faults...)
}
