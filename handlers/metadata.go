package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
)

// maxMetadataBytes limits the metadata of an email or contact, as compact JSON.
const maxMetadataBytes = 4096

// metadataJSON returns metadata in the form that is stored: compact, with
// sorted members and unchanged numbers.
func metadataJSON(field string, object gen.FreeObject) (json.RawMessage, error) {
	raw, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", field, err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, fmt.Errorf("write %s: %w", field, err)
	}
	tooLong := httpapi.Invalid(field, "must be at most %d bytes as compact JSON", maxMetadataBytes)
	if compact.Len() > len(`\u0000`)*maxMetadataBytes { // even if every character is escaped
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
	if len(kept) > maxMetadataBytes {
		return nil, tooLong
	}
	return kept, nil
}
