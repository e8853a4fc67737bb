package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// operation is an operation and its location.
type operation struct {
	*openapi3.Operation
	name, path, method string
}

// contractOperations returns every operation under paths, sorted by path.
func contractOperations(t *testing.T) []operation {
	t.Helper()
	doc, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	var ops []operation
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			ops = append(ops, operation{op, method + " " + path, path, method})
		}
	}
	slices.SortFunc(ops, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	return ops
}
