package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// contract is the part of an OpenAPI document that llms.txt shows.
type contract struct {
	Info struct {
		Title, Summary, Description string
	}
	Tags []struct {
		Name, Description string
	}
	Paths map[string]map[string]json.RawMessage
}

type operation struct {
	OperationID string `json:"operationId"`
	Summary     string
	Tags        []string
	Security    []map[string][]string
}

// methods are the methods of operations, in the order of the page.
var methods = []string{"get", "post", "put", "patch", "delete"}

// overview writes a page that a language model reads before it calls the API: the summary
// and the rules of the contract, and a line for each operation with its scopes.
func overview(document []byte) (string, error) {
	var c contract
	if err := json.Unmarshal(document, &c); err != nil {
		return "", fmt.Errorf("read the contract: %w", err)
	}
	byTag := map[string][]string{}
	for _, path := range slices.Sorted(maps.Keys(c.Paths)) {
		for _, method := range methods {
			raw, is := c.Paths[path][method]
			if !is {
				continue
			}
			var op operation
			if err := json.Unmarshal(raw, &op); err != nil {
				return "", fmt.Errorf("read %s %s: %w", method, path, err)
			}
			tag := "Other"
			if len(op.Tags) > 0 {
				tag = op.Tags[0]
			}
			byTag[tag] = append(byTag[tag], op.line(strings.ToUpper(method)+" "+path, tag))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n> %s\n\n%s\n\n", c.Info.Title, c.Info.Summary, strings.TrimSpace(c.Info.Description))
	b.WriteString("The whole contract, with every field, limit and error: [openapi.json](/openapi.json) (OpenAPI 3.1). For people: [/docs](/docs).\n")
	for _, tag := range c.Tags {
		if lines := byTag[tag.Name]; len(lines) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", tag.Name, tag.Description, strings.Join(lines, ""))
		}
	}
	return b.String(), nil
}

// line describes one operation.
func (op operation) line(call, tag string) string {
	var scopes []string
	for _, one := range op.Security {
		for _, of := range one {
			scopes = append(scopes, of...)
		}
	}
	needs := ""
	if len(scopes) > 0 {
		needs = " (scope: " + strings.Join(scopes, " or ") + ")"
	}
	return fmt.Sprintf("- [%s](/docs#/%s/%s): %s%s\n", call, tag, op.OperationID, op.Summary, needs)
}
