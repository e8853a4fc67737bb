package httpapi_test

import (
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/postroom/postroom/gen"
)

type operation struct {
	id     string
	body   bool
	params []param
}

type param struct{ in, name string }

// operations returns the operations of the contract.
func operations(t *testing.T) iter.Seq[operation] {
	t.Helper()
	type parameter struct {
		Ref      string `json:"$ref"`
		In, Name string
	}
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Parameters map[string]parameter }
	}
	if err := json.Unmarshal(gen.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	return func(yield func(operation) bool) {
		for _, item := range doc.Paths {
			for method, text := range item {
				var op struct {
					OperationID string
					RequestBody *struct{}
					Parameters  []parameter
				}
				if method == "parameters" || json.Unmarshal(text, &op) != nil {
					continue
				}
				out := operation{id: op.OperationID, body: op.RequestBody != nil}
				var shared []parameter
				_ = json.Unmarshal(item["parameters"], &shared) // there may be none
				for _, p := range append(op.Parameters, shared...) {
					if name, ok := strings.CutPrefix(p.Ref, "#/components/parameters/"); ok {
						p = doc.Components.Parameters[name]
					}
					out.params = append(out.params, param{p.In, p.Name})
				}
				if !yield(out) {
					return
				}
			}
		}
	}
}
