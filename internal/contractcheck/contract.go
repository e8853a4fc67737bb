// Package contractcheck holds real HTTP exchanges against the contract, for
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
	"os"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/postroom/postroom/internal/timeform"
)

// defineFormats makes kin-openapi check the formats that it knows by name only.
// It keeps them for the whole process.
var defineFormats = sync.OnceFunc(func() {
	openapi3.DefineStringFormatValidator("email", openapi3.NewRegexpFormatValidator(emailPattern))
	openapi3.DefineStringFormatValidator("date-time", openapi3.NewCallbackValidator(moment))
	openapi3.DefineStringFormatValidator("uri", openapi3.NewCallbackValidator(absoluteURI))
})

func absoluteURI(s string) error {
	u, err := url.Parse(s)
	if err == nil && !u.IsAbs() {
		err = fmt.Errorf("%q is not absolute", s)
	}
	return err
}

// moment checks a time as requests may write it. Times in responses have one form,
// which checkTimes checks.
func moment(s string) error {
	if _, ok := timeform.Parse(s); !ok {
		return fmt.Errorf("%q is not a time", s)
	}
	return nil
}

// strict turns what the served document leaves open for clients back into rules:
// tests refuse a value that is not documented.
var strict = strings.NewReplacer(
	`"x-extensible-enum":`, `"enum":`,
	`"x-anyOf":`, `"anyOf":`,
	`[^\\x00-\\x1F\\x7F\\x85]`, `[^\\x00-\\x1F\\x7F\\x85\u2028\u2029]`,
)

// Load reads the contract as it is served from a file. It does not check the
// contract itself, which takes half a second: Validate does.
func Load(path string) (*openapi3.T, error) {
	defineFormats()
	text, err := os.ReadFile(path) //nolint:gosec // a file that the test names
	if err != nil {
		return nil, fmt.Errorf("load the contract: %w", err)
	}
	doc, err := openapi3.NewLoader().LoadFromData([]byte(strict.Replace(string(text))))
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
