package handlers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// want fails the test unless the response has the status.
func (r response) want(t *testing.T, status int) response {
	t.Helper()
	if r.status != status {
		t.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// wantError fails the test unless the response is this error: a code or,
// separated by a space, a code and a param. Without a param there must be none.
func (r response) wantError(t *testing.T, status int, codeAndParam string) response {
	t.Helper()
	r.want(t, status)
	got := r.str(t, "error.code")
	if param, ok := r.get(t, "error.param"); ok {
		got += fmt.Sprintf(" %v", param)
	}
	if got != codeAndParam {
		t.Fatalf("error %q, want %q: %s", got, codeAndParam, r.body)
	}
	return r
}

// get returns the value at a path such as "data.0.id" of the body.
func (r response) get(t *testing.T, path string) (v any, ok bool) {
	t.Helper()
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatalf("the body is not JSON: %v: %s", err, r.body)
	}
	return valueAt(v, path)
}

// valueAt returns the value at a path within v.
func valueAt(v any, path string) (_ any, ok bool) {
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			if v, ok = in[name]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(in) {
				return nil, false
			}
			v = in[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func (r response) at(t *testing.T, path string) any {
	t.Helper()
	v, ok := r.get(t, path)
	if !ok {
		t.Fatalf("the body has no %s: %s", path, r.body)
	}
	return v
}

func (r response) str(t *testing.T, path string) string {
	t.Helper()
	s, ok := r.at(t, path).(string)
	if !ok {
		t.Fatalf("%s is not a string: %s", path, r.body)
	}
	return s
}

// strs returns the field of each item of the list at path.
func (r response) strs(t *testing.T, path, field string) []string {
	t.Helper()
	items, ok := r.at(t, path).([]any)
	if !ok {
		t.Fatalf("%s is not a list: %s", path, r.body)
	}
	out := make([]string, len(items))
	for i, item := range items { // reads the body only once
		v, _ := valueAt(item, field)
		if out[i], ok = v.(string); !ok {
			t.Fatalf("%s of %s.%d is not a string: %s", field, path, i, r.body)
		}
	}
	return out
}

// wantAt fails the test unless the value at path is the one written as JSON.
func (r response) wantAt(t *testing.T, path, want string) {
	t.Helper()
	var wantValue any
	if err := json.Unmarshal([]byte(want), &wantValue); err != nil {
		t.Fatalf("%q is not JSON: %v", want, err)
	}
	if d := cmp.Diff(wantValue, r.at(t, path)); d != "" {
		t.Errorf("%s: -want +got:\n%s", path, d)
	}
}

// notFound returns the error of a 404: it names the query parameter inbox_id,
// but no part of the path.
func notFound(path string) string {
	if strings.Contains(path, "?inbox_id=") {
		return "not_found inbox_id"
	}
	return "not_found"
}

// wantSame fails the test unless both responses are equal.
func (r response) wantSame(t *testing.T, other response) {
	t.Helper()
	var a, b any
	must(t, errors.Join(json.Unmarshal(r.body, &a), json.Unmarshal(other.body, &b)))
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("responses differ: -one +other:\n%s", d)
	}
}
