package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/postroom/postroom/gen"
)

// tool is an operation, or a combination of several, as agents see it.
type tool struct {
	name, title, description string
	operation                gen.OperationName
	// others are operations that also allow a key to use the tool.
	others []gen.OperationName
	// renamed maps arguments to the parameters that they stand for.
	renamed map[string]string
	// left are parameters and body fields that are not offered as arguments.
	left []string
	// changed are arguments whose schema differs from the contract.
	changed map[string]schema
	// once deduplicates repeated calls without an idempotency key.
	once  bool
	hints sdk.ToolAnnotations
	// mail reports that the response holds text from outside. Then show formats
	// it; other tools return JSON.
	mail bool
	show func(f fence, response map[string]any) string
	// trim removes what an agent does not need from a response.
	trim func(response map[string]any)
	// codes reports that the scope codes:read is enough for the tool.
	codes bool
	// run replaces the plain call of the operation.
	run func(ctx context.Context, s *server, t *tool, args arguments, req *sdk.CallToolRequest) (map[string]any, error)
	// ownInput reports that changed has all arguments of the tool.
	ownInput bool
	// forScopes, if any, limit who is shown the tool: only keys that were given one
	// of these scopes. Others with the right to call it still can.
	forScopes []string

	op                      *operation
	properties              schema
	required                []string
	listed, listedWithInbox *sdk.Tool // second: with a default inbox
}

// allowedBy returns operations. A key needs at least one of them to use the
// tool.
func (t *tool) allowedBy() []gen.OperationName {
	return append([]gen.OperationName{t.operation}, t.others...)
}

// tools returns all tools with their schemas from the contract.
func (c contract) tools() ([]*tool, error) {
	all := tools()
	for _, t := range all {
		var err error
		if t.op, err = c.operation(t.operation); err != nil {
			return nil, err
		}
		t.readInput()
		t.listed = t.describe(t.required)
		if _, ok := t.properties["inbox_id"]; ok && slices.Contains(t.required, "inbox_id") {
			t.listedWithInbox = t.describe(without(t.required, "inbox_id"))
		}
	}
	return all, nil
}

// readInput builds the arguments from the operation's parameters and body.
func (t *tool) readInput() {
	t.properties = schema{}
	if !t.ownInput {
		for _, p := range t.op.params {
			if slices.Contains(t.left, p.name) {
				continue
			}
			t.properties[t.argument(p.name)] = p.schema
			if p.in == "path" || p.required {
				t.required = append(t.required, t.argument(p.name))
			}
		}
		for name, s := range object(t.op.body["properties"]) {
			if !slices.Contains(t.left, name) {
				t.properties[name] = s
			}
		}
		for _, name := range list(t.op.body["required"]) {
			t.required = append(t.required, text(name))
		}
	}
	if t.op.keyed && !slices.Contains(t.left, "idempotency_key") {
		t.properties["idempotency_key"] = schema{
			"type": "string", "minLength": 1, "maxLength": 255,
			"description": "Makes a retry safe for 24 hours: the same key and arguments return the first result.",
		}
	}
	for name, s := range t.changed {
		t.properties[name] = s
	}
	slices.Sort(t.required)
	t.properties = slim(t.properties, t.changed)
}

func (t *tool) argument(param string) string {
	if name, ok := t.renamed[param]; ok {
		return name
	}
	return param
}

// describe returns the tool's entry in tools/list.
func (t *tool) describe(required []string) *sdk.Tool {
	input := schema{"type": "object", "properties": t.properties, "additionalProperties": false}
	if len(required) > 0 {
		input["required"] = required
	}
	encoded, _ := json.Marshal(input) // decoded JSON can always be encoded
	return &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description, InputSchema: json.RawMessage(encoded), Annotations: &t.hints,
	}
}

// arguments decodes the arguments of a call and renames them to those of the
// operation.
func (t *tool) arguments(raw json.RawMessage, inbox string) (arguments, error) {
	args := arguments{}
	if len(raw) > 0 && string(raw) != "null" {
		if err := json.Unmarshal(raw, &args); err != nil {
			return nil, invalid("arguments must be an object")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if _, ok := t.properties[name]; !ok {
			if !argumentName.MatchString(name) {
				name = "one of the names"
			}
			return nil, invalid("%s is not an argument of %s, which takes %s", name, t.name,
				strings.Join(slices.Sorted(maps.Keys(t.properties)), ", "))
		}
	}
	if _, takes := t.properties["inbox_id"]; takes && inbox != "" && (args["inbox_id"] == nil || string(args["inbox_id"]) == "null") {
		args["inbox_id"], _ = json.Marshal(inbox) // cannot fail for a string
	}
	for _, name := range t.required {
		if raw := args[name]; raw == nil || string(raw) == "null" {
			return nil, invalid("%s is required", name)
		}
	}
	for param, name := range t.renamed {
		if v, ok := args[name]; ok {
			args[param] = v
			delete(args, name)
		}
	}
	return args, nil
}

// argumentName matches what may be the name of an argument with a typing error.
var argumentName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// result returns a response as structured data and as text, for clients that read
// only text.
func (t *tool) result(response map[string]any) (*sdk.CallToolResult, error) {
	if t.trim != nil {
		t.trim(response)
	}
	f := newFence()
	shown := ""
	if t.show != nil {
		shown = t.show(f, response)
	}
	if t.mail {
		response = object(f.guard("", response))
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false) // keep the tags readable
	if err := enc.Encode(response); err != nil {
		return nil, err
	}
	structured := json.RawMessage(bytes.TrimSpace(data.Bytes()))
	if shown == "" {
		shown = string(structured)
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: shown}}, StructuredContent: structured}, nil
}

func without(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == name })
}
