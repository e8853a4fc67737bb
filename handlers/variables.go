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
