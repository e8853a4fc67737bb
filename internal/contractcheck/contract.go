// Package contractcheck checks real HTTP exchanges against the contract, for tests. A
// [Checker] knows the contract. A client with a transport of the checker fails the test
// for every exchange that does not match the contract:
//
//   - a request that the contract does not allow, unless it is marked with [Broken], and
//     such a request that the server accepts;
//   - a response with a status that the operation does not document (`default` documents
//     none), or with headers or a body that differ from the documentation;
//   - an error without the common error body, with a code that is not documented for its
//     status, or with internal details of the service;
//   - a time that is not in UTC with three decimals.
//
// The checker counts the (operation, status) pairs that it saw.
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

// defineFormats makes kin-openapi check the formats that it only knows by name. They apply
// to the whole process.
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

// moment checks a time in a request. Times in responses have one form, which checkTimes
// checks.
func moment(s string) error {
	if _, ok := timeform.Parse(s); !ok {
		return fmt.Errorf("%q is not a time", s)
	}
	return nil
}

// openKey marks the enums whose values a client does not check.
const openKey = "x-open"

// strict turns the parts that the served document leaves open for clients back into rules:
// tests refuse undocumented values.
var strict = strings.NewReplacer(
	`"x-extensible-enum":`, `"`+openKey+`":true,"enum":`,
	`"x-anyOf":`, `"anyOf":`,
	`"x-dependentSchemas":`, `"dependentSchemas":`,
	`[^\\x00-\\x1F\\x7F\\x85]`, `[^\\x00-\\x1F\\x7F\\x85\u2028\u2029]`,
)

// Load reads the served contract from a file. It does not check the contract itself, which
// takes half a second; Validate does.
func Load(path string) (*openapi3.T, error) {
	defineFormats()
	text, err := os.ReadFile(path) //nolint:gosec // the test chooses the file
	if err != nil {
		return nil, fmt.Errorf("load the contract: %w", err)
	}
	doc, err := openapi3.NewLoader().LoadFromData([]byte(strict.Replace(string(text))))
	if err != nil {
		return nil, fmt.Errorf("load the contract: %w", err)
	}
	closeClientParts(doc)
	return doc, nil
}

// closeClientParts removes what the served document adds for clients: the responses behind
// redirects, and the schema of the events of a stream, whose response is a text.
func closeClientParts(doc *openapi3.T) {
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			for status, r := range op.Responses.Map() {
				if r.Value == nil {
					continue
				}
				if _, redirected := r.Value.Extensions["x-redirected"]; redirected {
					op.Responses.Delete(status)
				}
				if stream := r.Value.Content["text/event-stream"]; stream != nil {
					stream.Schema, stream.Example = openapi3.NewStringSchema().NewRef(), nil
				}
			}
		}
	}
}

// Validate checks that the contract is valid and that its examples match it.
func Validate(ctx context.Context, doc *openapi3.T) error {
	if err := doc.Validate(ctx); err != nil {
		return fmt.Errorf("the contract is not valid: %w", err)
	}
	return nil
}

// emailPattern matches what may be an address. Quotes may contain another "@".
const emailPattern = `^("([^"\\]|\\.)+"|[^@]+)@[^@<>",\s]+$`

type brokenKey struct{}

// Broken marks requests that break the contract on purpose.
func Broken(ctx context.Context) context.Context { return context.WithValue(ctx, brokenKey{}, true) }

func isBroken(ctx context.Context) bool {
	broken, _ := ctx.Value(brokenKey{}).(bool)
	return broken
}
