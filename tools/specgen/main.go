// Command specgen generates files from the contract, openapi.yaml.
//
// openapi.yaml states everything once, with aliases and the shorthands x-errors
// and x-extends, which it explains. specgen generates gen/openapi.json (the
// served document, plain OpenAPI 3.1), gen/openapi.go (which embeds it),
// gen/values.go (the values of enums that only responses have), gen/inbox_ids.go
// (the effect of inbox_ids) and the input of ogen, which generates the server and
// the client.
//
// The ogen input leaves out what ogen does not support and what would make a
// client brittle; ogen.go lists the differences. The output depends only on the
// input. What cannot be converted exactly is an error.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
)

func main() {
	in := flag.String("in", "openapi.yaml", "the contract")
	gen := flag.String("gen", "gen", "folder of the generated package")
	ogen := flag.String("ogen", "tmp/openapi.ogen.yaml", "where to write the input of ogen")
	flag.Parse()

	if err := run(*in, *gen, *ogen); err != nil {
		fmt.Fprintln(os.Stderr, "specgen:", err)
		os.Exit(1)
	}
}

// run reads the contract at in and writes all generated files.
func run(in, gen, ogen string) error {
	src, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	files, err := generate(src)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	for _, f := range []struct {
		path string
		data []byte
	}{
		{filepath.Join(gen, "openapi.json"), files.openapiJSON},
		{filepath.Join(gen, "openapi.json.gz"), files.openapiGzip},
		{filepath.Join(gen, "openapi.go"), files.openapiGo},
		{filepath.Join(gen, "values.go"), files.valuesGo},
		{filepath.Join(gen, "inbox_ids.go"), files.inboxIDsGo},
		{ogen, files.ogenYAML},
	} {
		if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(f.path, f.data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// outputs are the contents of the files that specgen writes.
type outputs struct {
	openapiJSON, openapiGzip, openapiGo, valuesGo, inboxIDsGo, ogenYAML []byte
}

// generate generates all outputs from the text of the contract.
func generate(src []byte) (outputs, error) {
	var out outputs
	root, err := read(src)
	if err != nil {
		return out, err
	}
	if out.openapiJSON, err = publicJSON(root); err != nil {
		return out, err
	}
	if out.openapiGzip, err = compressed(out.openapiJSON); err != nil {
		return out, err
	}
	out.openapiGo = []byte(openapiGo)
	if out.valuesGo, err = valuesGo(root); err != nil {
		return out, err
	}
	if out.inboxIDsGo, err = inboxIDsGo(root); err != nil {
		return out, err
	}
	out.ogenYAML, err = ogenYAML(root)
	return out, err
}

// read returns the root of the contract with its shorthands expanded.
func read(src []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(src, &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode {
		return nil, fmt.Errorf("the document is empty")
	}
	root, err := resolve(doc.Content[0])
	if err != nil {
		return nil, err
	}
	return root, addErrors(root)
}

// errorsKey lists the error responses that an operation shares with others.
const errorsKey = "x-errors"

// addErrors gives each operation the responses of x-shared that it lists by
// status, and the default response.
func addErrors(root *yaml.Node) error {
	shared := get(root, sharedKey, "errors")
	for path, item := range pairs(get(root, "paths")) {
		for method, op := range operations(item) {
			responses := get(op, "responses")
			if responses == nil {
				return fmt.Errorf("%s %s: no responses", method, path)
			}
			var statuses []*yaml.Node
			if list := get(op, errorsKey); list != nil {
				statuses = list.Content
			}
			for _, status := range statuses {
				response := get(shared, status.Value)
				if response == nil {
					return fmt.Errorf("%s %s: x-shared has no error response %s", method, path, status.Value)
				}
				if get(responses, status.Value) != nil {
					return fmt.Errorf("%s %s: response %s is documented twice", method, path, status.Value)
				}
				set(responses, status.Value, clone(response))
			}
			dropKeys(op, errorsKey)
			if d := get(shared, "default"); d != nil {
				set(responses, "default", clone(d))
			}
		}
	}
	return nil
}
