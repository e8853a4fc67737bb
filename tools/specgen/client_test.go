package main

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const invoker = `package gen

// Invoker invokes operations described by OpenAPI v3 specification.
type Invoker interface {
	ThingsInvoker
	// GetOpenapi invokes getOpenapi operation.
	//
	// Returns this description.
	//
	// GET /openapi.json
	GetOpenapi(ctx context.Context, options ...RequestOption) (GetOpenapiRes, error)
}

type ThingsInvoker interface {
	// CreateThing invokes createThing operation.
	//
	// Creates a thing.
	// It is new.
	//
	// POST /things
	CreateThing(ctx context.Context, request *ThingCreate, params CreateThingParams, options ...RequestOption) (*Thing, error)
	// WaitForThing invokes waitForThing operation.
	//
	// GET /wait
	WaitForThing(ctx context.Context, options ...RequestOption) (*Thing, error)
}
`

func TestClientGo(t *testing.T) {
	t.Parallel()
	api, err := parser.ParseFile(token.NewFileSet(), "", invoker, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientGo(api, []string{"WaitForThing"})
	if err != nil {
		t.Fatal(err)
	}
	const want = header + `package client

import (
	"context"

	"github.com/postroom/postroom/gen"
)

// CreateThing calls POST /things.
//
// Creates a thing.
// It is new.
func (c *Client) CreateThing(ctx context.Context, request *gen.ThingCreate, params gen.CreateThingParams, options ...gen.RequestOption) (*gen.Thing, error) {
	return unwrap(c.api.CreateThing(ctx, request, params, options...))
}

// GetOpenapi calls GET /openapi.json.
//
// Returns this description.
func (c *Client) GetOpenapi(ctx context.Context, options ...gen.RequestOption) (gen.GetOpenapiRes, error) {
	return unwrap(c.api.GetOpenapi(ctx, options...))
}
`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestClientGoRefuses(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"package gen\n\ntype Invoker interface{}\n",
		"package gen\n\ntype Invoker interface {\n\t// A.\n\tA(ctx context.Context) error\n}\n",
	} {
		api, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clientGo(api, nil); err == nil {
			t.Errorf("no error for %q", src)
		}
	}
}
