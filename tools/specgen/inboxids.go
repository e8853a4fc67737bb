package main

import (
	"bytes"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// inboxIDsKey is the extension of an operation that describes the effect of a
// key's inbox_ids.
const inboxIDsKey = "x-inbox-ids"

// inboxIDsRules are its values. docs/security.md shows the texts.
var inboxIDsRules = map[string]string{
	"refused":   "403 `insufficient_scope`",
	"within":    "in the key's inboxes; anything else is 404",
	"filtered":  "shows what belongs to the key's inboxes",
	"named":     "with `inbox_id`, which names one of the key's inboxes; without it 403 `insufficient_scope`",
	"sender":    "from addresses of the key's inboxes; any other `from` is 403 `insufficient_scope`",
	"binding":   "creates what is bound to the key's inboxes",
	"subset":    "what is bound to the key's inboxes alone; anything else is left out of lists and 403 `insufficient_scope` by id",
	"unbounded": "not bounded",
}

// inboxIDsGo returns the rule of each operation that needs a key, as Go.
func inboxIDsGo(root *yaml.Node) ([]byte, error) {
	rules := map[string]string{}
	for path, item := range pairs(get(root, "paths")) {
		for method, op := range operations(item) {
			rule := str(op, inboxIDsKey)
			keyed := get(op, "security") != nil && len(get(op, "security").Content) > 0
			switch {
			case !keyed && rule == "":
				continue
			case !keyed:
				return nil, fmt.Errorf("%s %s: %s is for operations that need a key", method, path, inboxIDsKey)
			case inboxIDsRules[rule] == "":
				return nil, fmt.Errorf("%s %s: %s is %q, want one of %q", method, path, inboxIDsKey, rule, slices.Sorted(maps.Keys(inboxIDsRules)))
			}
			id := str(op, "operationId")
			rules[strings.ToUpper(id[:1])+id[1:]] = rule
		}
	}
	var out bytes.Buffer
	out.WriteString(header + "package gen\n\n// Rules for keys with inbox_ids, by operation.\nconst (\n")
	for _, rule := range slices.Sorted(maps.Keys(inboxIDsRules)) {
		fmt.Fprintf(&out, "\tInboxIDs%s = %q\n", goName(rule), rule)
	}
	out.WriteString(")\n\n// InboxIDsRules says what a key with inbox_ids may do with each operation that\n// needs a key. It is the contract's " + inboxIDsKey + ".\nvar InboxIDsRules = map[OperationName]string{\n")
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		fmt.Fprintf(&out, "\t%sOperation: InboxIDs%s,\n", name, goName(rules[name]))
	}
	out.WriteString("}\n")
	return format.Source(out.Bytes())
}
