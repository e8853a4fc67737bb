package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/postroom/postroom/gen"
	"github.com/postroom/postroom/internal/httpapi"
	"github.com/postroom/postroom/store"
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
	if place := tooLarge(field, v); place != "" {
		return nil, httpapi.Invalid(place, "%s", outOfRange)
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

// metadataToAPI returns metadata as metadataJSON stored it, and nothing of any other text.
func metadataToAPI(stored json.RawMessage) gen.FreeObject {
	object := gen.FreeObject{}
	_ = object.UnmarshalJSON(stored) // always an object
	return object
}

// outOfRange is what is wrong with a number beyond float64. Most clients could not read
// a response with it.
const outOfRange = "is out of range: write the number as a string"

// isOutOfRange reports whether a number, as it is written, is beyond float64. A number
// too small for float64 is not: clients read it as 0.
func isOutOfRange(number string) bool {
	_, err := strconv.ParseFloat(number, 64)
	return err != nil
}

// tooLarge returns the place of the first number in v that is out of range, or "".
// field is the place of v.
func tooLarge(field string, v any) string {
	switch v := v.(type) {
	case json.Number:
		if isOutOfRange(v.String()) {
			return field
		}
	case []any:
		for i, item := range v {
			if place := tooLarge(fmt.Sprintf("%s[%d]", field, i), item); place != "" {
				return place
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if place := tooLarge(httpapi.JoinPath(field, name), v[name]); place != "" {
				return place
			}
		}
	}
	return ""
}

// Limits of the values of metadata and tags. The contract states those of
// strings; the generated code does not check the values.
const (
	maxMetadataText = 500
	maxTagText      = 256
	maxNumberText   = 100
)

// inboxMetadata returns the metadata of an inbox as stored: each value in its
// original form, so that numbers stay exact.
func inboxMetadata(m gen.Metadata) (store.Labels, error) {
	return labels("metadata", m, func(v jx.Raw) string {
		if v.Type() == jx.Null {
			return ""
		}
		return scalarFault(v, maxMetadataText)
	})
}

// tagsFromAPI reads tags. place is the prefix of the field names.
func tagsFromAPI(place string, tags gen.Tags) (store.Labels, error) {
	return labels(place+"tags", tags, func(v jx.Raw) string {
		if v.Type() == jx.Null {
			return "must be a string, a number or a boolean, not null"
		}
		if fault := scalarFault(v, maxTagText); fault != "" {
			return fault
		}
		if s, err := jx.DecodeBytes(v).Str(); err == nil && strings.ContainsFunc(s, breaksLine) {
			return "must not contain line breaks or other control characters"
		}
		return ""
	})
}

// emailTagsFromAPI is tagsFromAPI for an email, whose tags may be a list.
func emailTagsFromAPI(place string, tags gen.EmailTags) (store.Labels, error) {
	if !tags.IsTagList() {
		return tagsFromAPI(place, tags.Tags)
	}
	all := make(gen.Tags, len(tags.TagList))
	for i, tag := range tags.TagList {
		at := fieldPath(place+"tags", i, "name")
		if _, twice := all[tag.Name]; twice {
			return nil, httpapi.Invalid(at, "is the name of another tag: use each name once")
		}
		all[tag.Name] = tag.Value
	}
	return tagsFromAPI(place, all)
}

func labels(field string, in map[string]jx.Raw, fault func(jx.Raw) string) (store.Labels, error) {
	out := make(store.Labels, len(in))
	for name, v := range in {
		if f := fault(v); f != "" {
			return nil, httpapi.Invalid(httpapi.JoinPath(field, name), "%s", f)
		}
		out[name] = json.RawMessage(v)
	}
	return out, nil
}

func labelsToAPI(in store.Labels) map[string]jx.Raw {
	out := make(map[string]jx.Raw, len(in))
	for name, v := range in {
		out[name] = jx.Raw(v)
	}
	return out
}

var labelTypes = map[jx.Type]string{jx.Object: "an object", jx.Array: "an array", jx.Null: "null"}

// scalarFault returns what is wrong with the value of a label, or "".
func scalarFault(v jx.Raw, maxText int) string {
	switch v.Type() {
	case jx.String:
		s, err := jx.DecodeBytes(v).Str()
		if n := utf8.RuneCountInString(s); err == nil && n > maxText {
			return fmt.Sprintf("must have at most %d characters, but has %d", maxText, n)
		}
	case jx.Number:
		if len(v) > maxNumberText {
			return fmt.Sprintf("must have at most %d characters, but has %d", maxNumberText, len(v))
		}
		if isOutOfRange(string(v)) {
			return outOfRange
		}
	case jx.Bool:
	default:
		return "must be a string, a number or a boolean, not " + labelTypes[v.Type()]
	}
	return ""
}
