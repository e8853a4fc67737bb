package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/template"
)

// maxVariables is how many bytes of JSON the values of a template's variables
// may take together. More would not fit into a mail.
const maxVariables = 1 << 20

// variablesFromAPI reads the values of variables out of the field of a request.
// Numbers stay as they were written.
func variablesFromAPI(field string, object gen.FreeObject) (map[string]any, error) {
	bytesTaken := 0
	for name, raw := range object {
		if bytesTaken += len(name) + len(raw); bytesTaken > maxVariables {
			return nil, errInvalid(field, "holds more than %d bytes", maxVariables)
		}
	}
	out := make(map[string]any, len(object))
	for name, raw := range object {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, fmt.Errorf("read %s: %w", field, err)
		}
		out[name] = v
	}
	return out, nil
}

// templateError is an error of the template package as the caller sees it: at
// the part of the mail that is at fault, or at the value in field.
func templateError(field string, err error) error {
	e, ok := errors.AsType[*template.Error](err)
	switch {
	case !ok:
		return err
	case e.Variable != "":
		return errInvalid(field+"."+e.Variable, "%s", e.Reason)
	}
	return errInvalid(string(e.Part), "%s", e.Reason)
}

// maxMetadata is how many bytes of compact JSON the metadata of a resource of
// area B may take.
const maxMetadata = 4096

// metadataJSON is the metadata of a request as it is kept: compact, its members
// in order, its numbers as they were written.
func metadataJSON(field string, object gen.FreeObject) (json.RawMessage, error) {
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", field, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, fmt.Errorf("write %s: %w", field, err)
	}
	tooLong := errInvalid(field, "takes more than %d bytes as compact JSON", maxMetadata)
	if compact.Len() > len(`\u0000`)*maxMetadata { // though every character may be written as an escape
		return nil, tooLong
	}
	d := json.NewDecoder(&compact)
	d.UseNumber()
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("read %s: %w", field, err)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write %s: %w", field, err)
	}
	kept := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if len(kept) > maxMetadata {
		return nil, tooLong
	}
	return kept, nil
}
