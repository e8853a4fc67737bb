package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/internal/template"
)

// maxVariables limits the values of a template's variables, in bytes of JSON.
// More would not fit into a message.
const maxVariables = 1 << 20

// variablesFromAPI reads the values of variables from a request field. Numbers
// keep their exact form.
func variablesFromAPI(field string, object gen.FreeObject) (map[string]any, error) {
	bytesTaken := 0
	for name, raw := range object {
		if bytesTaken += len(name) + len(raw); bytesTaken > maxVariables {
			return nil, httpapi.Invalid(field, "must be at most %d bytes", maxVariables)
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

// templateError converts an error of the template package to one that names the
// part of the template or the value in field.
func templateError(field string, err error) error {
	e, ok := errors.AsType[*template.Error](err)
	switch {
	case !ok:
		return err
	case e.Variable != "":
		return httpapi.Invalid(field+"."+e.Variable, "%s", e.Reason)
	}
	return httpapi.Invalid(string(e.Part), "%s", e.Reason)
}
