// Package contractcheck holds real HTTP exchanges against openapi.yaml, for
// tests. A [Checker] knows the contract; a client whose transport it makes
// fails the test for every exchange that the contract does not foresee:
//
//   - a request that the contract refuses, unless it is marked with [Broken],
//     and one that it refuses and the server takes;
//   - an answer with a status that the operation does not document (`default`
//     documents none), or whose headers or body are not as documented;
//   - an error that is not the one body that all errors have, has a code that
//     its status does not document, or shows how the service works inside;
//   - a time that is not in UTC with three decimals.
//
// The checker counts which (operation, status) pairs it saw.
package contractcheck

import (
	"context"
	"fmt"
	"net/url"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
)

// defineFormats makes kin-openapi check the formats that it knows by name only.
// It keeps them for the whole process.
var defineFormats = sync.OnceFunc(func() {
	openapi3.DefineStringFormatValidator("email", openapi3.NewRegexpFormatValidator(emailPattern))
	openapi3.DefineStringFormatValidator("uri", openapi3.NewCallbackValidator(absoluteURI))
})

func absoluteURI(s string) error {
	u, err := url.Parse(s)
	if err == nil && !u.IsAbs() {
		err = fmt.Errorf("%q is not absolute", s)
	}
	return err
}

// Load reads the contract from a file. Whether the contract itself is in order
// takes half a second to find out, and is for Validate to say.
func Load(path string) (*openapi3.T, error) {
	defineFormats()
	doc, err := openapi3.NewLoader().LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("load the contract: %w", err)
	}
	return doc, nil
}

// Validate says whether a contract is one, and its examples are as it says.
func Validate(ctx context.Context, doc *openapi3.T) error {
	if err := doc.Validate(ctx); err != nil {
		return fmt.Errorf("the contract is not valid: %w", err)
	}
	return nil
}

// emailPattern takes what may be an address: quotes may hold another "@".
const emailPattern = `^("([^"\\]|\\.)+"|[^@]+)@[^@<>",\s]+$`

type brokenKey struct{}

// Broken marks requests that are meant to break the contract.
func Broken(ctx context.Context) context.Context { return context.WithValue(ctx, brokenKey{}, true) }

func isBroken(ctx context.Context) bool {
	broken, _ := ctx.Value(brokenKey{}).(bool)
	return broken
}
