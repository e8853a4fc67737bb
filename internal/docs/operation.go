package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxDepth is how deep the fields of a body are listed.
const maxDepth = 4

// describe writes the Markdown of an operation: what it does, what it takes and what it
// returns.
func (c *contract) describe(op *operation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", op.Summary)
	if op.path[0] == '/' {
		fmt.Fprintf(&b, "`%s %s`\n\n", op.method, op.path)
	}
	fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(op.Description))
	if op.Deprecated {
		b.WriteString("**Deprecated.**\n\n")
	}
	if scopes := op.scopes(); len(scopes) > 0 {
		fmt.Fprintf(&b, "Needs a key with the scope `%s`.\n\n", strings.Join(scopes, "` or `"))
	}
	var rows []field
	for _, p := range op.Parameters {
		s := c.resolve(p.Schema)
		rows = append(rows, field{p.Name, p.In + ", " + c.typeOf(s), p.Description, p.Required, notes(s)})
	}
	table(&b, "## Parameters", rows)
	if op.RequestBody != nil {
		for _, kind := range op.RequestBody.Content.names {
			m := op.RequestBody.Content.values[kind]
			heading := "## Body"
			if op.path[0] != '/' {
				heading = "## Payload"
			} else if !op.RequestBody.Required {
				heading += " (optional)"
			}
			table(&b, heading, c.fields(m.Schema, "", maxDepth, nil))
			if text := c.firstExample(m.Examples); text != "" && op.path[0] != '/' {
				fmt.Fprintf(&b, "```json\n%s\n```\n\n", text)
			}
		}
	}
	b.WriteString("## Responses\n\n")
	for _, status := range op.Responses.names {
		r := op.Responses.values[status]
		fmt.Fprintf(&b, "**%s** %s\n\n", status, oneLine(r.Description))
		if status[0] != '2' {
			continue
		}
		for _, kind := range r.Content.names {
			m := r.Content.values[kind]
			if kind != "application/json" {
				fmt.Fprintf(&b, "The body is `%s`.\n\n", kind)
				continue
			}
			table(&b, "", c.fields(m.Schema, "", maxDepth, nil))
			if text := c.firstExample(m.Examples); text != "" {
				fmt.Fprintf(&b, "```json\n%s\n```\n\n", text)
			}
		}
	}
	return b.String()
}

// field is a row of a table of fields.
type field struct {
	name, kind, description string
	required                bool
	notes                   string
}

// insideHeading is the line between the fields of a body and those of the objects in it, which pages
// fold.
const insideHeading = "Fields of nested objects"

func table(b *strings.Builder, heading string, rows []field) {
	var top, inner []field
	for _, f := range rows {
		if strings.ContainsAny(strings.TrimPrefix(f.name, "[]."), ".[") {
			inner = append(inner, f)
		} else {
			top = append(top, f)
		}
	}
	tableOf(b, heading, top)
	tableOf(b, insideHeading, inner)
}

func tableOf(b *strings.Builder, heading string, rows []field) {
	if len(rows) == 0 {
		return
	}
	if heading != "" {
		b.WriteString(heading + "\n\n")
	}
	b.WriteString("| Field | Type | Meaning |\n| --- | --- | --- |\n")
	for _, f := range rows {
		if f.required {
			f.kind += ", required"
		}
		text := oneLine(strings.TrimSpace(f.description + " " + f.notes))
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.name, f.kind, strings.ReplaceAll(text, "|", `\|`))
	}
	b.WriteString("\n")
}

// oneLine joins the lines of a text.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// fields lists the fields of a schema, those of objects in it with the name of the object
// before them. within holds the names of the schemas that it is part of.
func (c *contract) fields(s *schema, prefix string, depth int, within []string) (rows []field) {
	if s == nil || depth == 0 {
		return nil
	}
	if s.Ref != "" {
		name := lastPart(s.Ref)
		if slices.Contains(within, name) {
			return nil
		}
		within = append(slices.Clone(within), name)
	}
	s = c.resolve(s)
	for _, part := range s.AllOf {
		rows = append(rows, c.fields(part, prefix, depth, within)...)
	}
	for _, part := range slices.Concat(s.OneOf, s.AnyOf) {
		for _, f := range c.fields(part, prefix, depth, within) {
			if !slices.ContainsFunc(rows, func(g field) bool { return g.name == f.name }) {
				f.required = false
				rows = append(rows, f)
			}
		}
	}
	if s.Items != nil {
		return append(rows, c.fields(s.Items, strings.TrimSuffix(prefix, ".")+"[].", depth, within)...)
	}
	for _, name := range s.Properties.names {
		of := s.Properties.values[name]
		is := c.resolve(of)
		rows = append(rows, field{prefix + name, c.typeOf(is), is.Description, slices.Contains(s.Required, name), notes(is)})
		rows = append(rows, c.fields(of, prefix+name+".", depth-1, within)...)
	}
	return rows
}

// typeOf names the type of a resolved schema.
func (c *contract) typeOf(s *schema) string {
	var types []string
	add := func(name string) {
		if name != "" && !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	for _, t := range s.Type {
		switch {
		case t == "array" && s.Items != nil:
			add("array of " + c.typeOf(c.resolve(s.Items)))
		case t == "string" && s.Format == "date-time":
			add("time")
		default:
			add(t)
		}
	}
	for _, part := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		for name := range strings.SplitSeq(c.typeOf(c.resolve(part)), " or ") {
			add(name)
		}
	}
	if len(types) == 0 {
		add(map[bool]string{true: "string", false: "any"}[s.Enum != nil || s.Const != nil || s.Known != nil])
	}
	return strings.Join(types, " or ")
}

// notes lists the limits of a value.
func notes(s *schema) string {
	var out []string
	values := slices.Concat(s.Enum, s.Known)
	if s.Const != nil && !strings.Contains(s.Description, "Always") {
		values = append(values, s.Const)
	}
	if len(values) > 0 {
		names := make([]string, len(values))
		for i, v := range values {
			names[i] = "`" + strings.Trim(string(v), `"`) + "`"
		}
		out = append(out, strings.Join(names, ", ")+".")
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		out = append(out, fmt.Sprintf("%s to %s.", *s.Minimum, *s.Maximum))
	case s.Minimum != nil:
		out = append(out, fmt.Sprintf("At least %s.", *s.Minimum))
	case s.Maximum != nil:
		out = append(out, fmt.Sprintf("At most %s.", *s.Maximum))
	}
	if s.MaxLength != nil {
		out = append(out, fmt.Sprintf("At most %d characters.", *s.MaxLength))
	}
	if s.MaxItems != nil {
		out = append(out, fmt.Sprintf("At most %d items.", *s.MaxItems))
	}
	if s.Default != nil {
		out = append(out, "Default: `"+string(s.Default)+"`.")
	}
	return strings.Join(out, " ")
}

// sample is an example call in one language.
type sample struct{ Name, Language, Code string }

// samples writes the call of an operation in each language. Parts of the path are written
// in capitals.
func (c *contract) samples(op *operation) []sample {
	if op.path[0] != '/' {
		return nil
	}
	call := call{op: op}
	for _, p := range op.Parameters {
		switch {
		case p.In == "path":
			call.path = append(call.path, p.Name)
		case p.In == "query" && p.Required:
			call.query = append(call.query, p.Name)
		}
	}
	if op.RequestBody != nil {
		m := op.RequestBody.Content.values["application/json"]
		call.body, call.schema = c.firstExample(m.Examples), m.Schema
	}
	all := []sample{{"curl", "bash", call.curl()}}
	for status, r := range op.Responses.values {
		if status[0] == '2' && r.Content.values["application/json"].Schema == nil && r.Content.names != nil {
			return all // the clients have other methods for what is not JSON
		}
	}
	return append(all, sample{"TypeScript", "ts", call.typeScript()}, sample{"Python", "python", call.python()}, sample{"Go", "go", call.golang()})
}

// call is what an example passes.
type call struct {
	op          *operation
	path, query []string
	body        string
	schema      *schema
}

var inPath = regexp.MustCompile(`\{[a-z_]+\}`)

// value is the stand-in for a parameter.
func value(name string) string { return strings.ToUpper(strings.Trim(name, "{}")) }

func (x *call) curl() string {
	url := inPath.ReplaceAllStringFunc(x.op.path, value)
	for i, name := range x.query {
		url += map[bool]string{true: "?", false: "&"}[i == 0] + name + "=" + value(name)
	}
	out := "curl"
	if x.op.method != "GET" {
		out += " -X " + x.op.method
	}
	out += ` "$POSTROOM_URL` + url + `"`
	if len(x.op.scopes()) > 0 {
		out += " \\\n  -H \"Authorization: Bearer $POSTROOM_KEY\""
	}
	if x.body != "" {
		out += " \\\n  -H 'Content-Type: application/json' \\\n  -d '" + strings.ReplaceAll(x.body, "'", `'\''`) + "'"
	}
	return out
}

var (
	keyOfLine  = regexp.MustCompile(`(?m)^( *)"([A-Za-z_][A-Za-z0-9_]*)": `)
	wordOfLine = regexp.MustCompile(`(?m)(^ *|": )(true|false|null)(,?)$`)
)

func (x *call) typeScript() string {
	var parts []string
	object := func(name string, of []string) {
		if len(of) == 0 {
			return
		}
		var members []string
		for _, n := range of {
			members = append(members, n+`: "`+value(n)+`"`)
		}
		parts = append(parts, name+": { "+strings.Join(members, ", ")+" }")
	}
	object("path", x.path)
	object("query", x.query)
	if x.body != "" {
		parts = append(parts, "body: "+strings.ReplaceAll(keyOfLine.ReplaceAllString(x.body, "$1$2: "), "\n", "\n  "))
	}
	args := ""
	switch {
	case len(parts) > 1 || strings.Contains(strings.Join(parts, ""), "\n"):
		args = ", {\n  " + strings.Join(parts, ",\n  ") + ",\n}"
	case len(parts) == 1:
		args = ", { " + parts[0] + " }"
	}
	return "import { Postroom } from \"postroom\";\n\nconst postroom = new Postroom(); // POSTROOM_URL, POSTROOM_KEY\n" +
		"const response = await postroom." + strings.ToLower(x.op.method) + `("` + x.op.path + `"` + args + ");"
}

func (x *call) python() string {
	args := []string{`"` + x.op.method + `"`, `"` + x.op.path + `"`}
	for _, name := range x.path {
		args = append(args, name+`="`+value(name)+`"`)
	}
	if len(x.query) > 0 {
		var members []string
		for _, n := range x.query {
			members = append(members, `"`+n+`": "`+value(n)+`"`)
		}
		args = append(args, "query={"+strings.Join(members, ", ")+"}")
	}
	if x.body != "" {
		text := wordOfLine.ReplaceAllStringFunc(x.body, func(s string) string {
			return strings.NewReplacer("true", "True", "false", "False", "null", "None").Replace(s)
		})
		args = append(args, "body="+text)
	}
	return "from postroom import Postroom\n\npostroom = Postroom()  # POSTROOM_URL, POSTROOM_KEY\nresponse = postroom.request(" + strings.Join(args, ", ") + ")"
}

func (x *call) golang() string {
	args := []string{"ctx"}
	var b strings.Builder
	if x.body != "" {
		name := "FreeObject"
		if x.schema.Ref != "" {
			name = lastPart(x.schema.Ref)
		}
		fmt.Fprintf(&b, "var body gen.%s\nif err := json.Unmarshal([]byte(`%s`), &body); err != nil {\n\treturn err\n}\n", name, strings.ReplaceAll(x.body, "`", "'"))
		switch {
		case !x.op.RequestBody.Required:
			args = append(args, "gen.NewOpt"+name+"(body)")
		case name == "FreeObject":
			args = append(args, "body")
		default:
			args = append(args, "&body")
		}
	}
	method := strings.ToUpper(x.op.OperationID[:1]) + x.op.OperationID[1:]
	if method == "WaitForMessage" { // the client waits as long as the context
		args = append(args, `"INBOX_ID"`, "client.Wait{}")
	} else if len(x.op.Parameters) > 0 {
		var members []string
		for _, name := range slices.Concat(x.path, x.query) {
			members = append(members, goName(name)+`: "`+value(name)+`"`)
		}
		args = append(args, "gen."+method+"Params{"+strings.Join(members, ", ")+"}")
	}
	return "postroom, err := client.New(os.Getenv(\"POSTROOM_URL\"), os.Getenv(\"POSTROOM_KEY\"))\nif err != nil {\n\treturn err\n}\n" +
		b.String() + "response, err := postroom." + method + "(" + strings.Join(args, ", ") + ")"
}

// goName is the name of a parameter in the Go client.
func goName(name string) string {
	var out strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		switch part {
		case "id":
			out.WriteString("ID")
		case "api":
			out.WriteString("API")
		default:
			out.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return out.String()
}
