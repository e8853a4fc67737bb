package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/postroom/postroom/internal/nearname"
)

// Fault is one fault of a request.
type Fault struct {
	// Param is the field or parameter, such as to[1].email, or empty for the
	// body.
	Param string
	// Message says what is wrong with it. It follows the name of the field.
	Message string
}

// MaxFaults limits how many faults of one request are listed.
const MaxFaults = 20

// mailboxPattern is that of an address with or without a name. The handler checks
// the rest of the grammar.
const mailboxPattern = `^[^\x00-\x1F\x7F\x85]*[^\x00-\x1F\x7F\x85 @]@[^\x00-\x1F\x7F\x85 @<>]+>? *$`

const notAnAddress = "is not an email address"

// patternRules describe the patterns of the contract.
var patternRules = map[string]string{
	strictOneLine:                         "must not contain line breaks or other control characters",
	`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`: "may only have letters, digits, hyphens and underscores, and single dots between them",
	`^https?://`:                          "must start with http:// or https://",
	`^.+:`:                                "must have the form name:value",
	`^[0-9]+$`:                            "may only have digits",
	`^.{1,40}$`:                           "must have 1 to 40 characters",
	`^[!-9;-~]{1,76}$`:                    "must have 1 to 76 visible ASCII characters and no colon",
}

// found is a fault before sorting.
type found struct {
	path []string
	say  string
	rank int // of two faults of one value, the lower one is reported
}

// faults validates a document.
func (c *Contract) faults(schema *jsonschema.Schema, doc document) []Fault {
	failed, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(doc.root))
	if !ok {
		return nil
	}
	all := c.collect(failed, doc)
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(comparePaths(a.path, b.path, doc.order), cmp.Compare(a.rank, b.rank), cmp.Compare(a.say, b.say))
	})
	all = slices.CompactFunc(all, func(a, b found) bool { return slices.Equal(a.path, b.path) })
	var out []Fault
	for _, f := range all[:min(len(all), MaxFaults)] {
		out = append(out, Fault{pathOf(f.path, doc.root), f.say})
	}
	return out
}

// comparePaths sorts by the position of the outermost field in the body, with
// missing fields last.
func comparePaths(a, b []string, order map[string]int) int {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			continue
		}
		if i == 0 && order != nil {
			return cmp.Or(cmp.Compare(placeOf(a[0], order), placeOf(b[0], order)), cmp.Compare(a[0], b[0]))
		}
		// Indexes are shorter when they are lower.
		x, errX := strconv.Atoi(a[i])
		y, errY := strconv.Atoi(b[i])
		if errX == nil && errY == nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a[i], b[i])
	}
	return cmp.Compare(len(a), len(b))
}

func placeOf(name string, order map[string]int) int {
	if n, ok := order[name]; ok {
		return n
	}
	return len(order) + 1
}

// pathOf formats a path as to[1].email.
func pathOf(path []string, root any) string {
	out := ""
	for _, name := range path {
		switch v := root.(type) {
		case []any:
			out = JoinPath(out, "["+name+"]")
			if i, err := strconv.Atoi(name); err == nil && i < len(v) {
				root = v[i]
			}
		case map[string]any:
			out, root = JoinPath(out, name), v[name]
		default:
			out = JoinPath(out, name)
		}
	}
	return out
}

// JoinPath adds a name, or an index such as [3], to a path.
func JoinPath(prefix, name string) string {
	if prefix == "" || name == "" || strings.HasPrefix(name, "[") {
		return prefix + name
	}
	return prefix + "." + name
}

// collect returns the faults below an error.
func (c *Contract) collect(e *jsonschema.ValidationError, doc document) []found {
	switch e.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		return c.closest(e, doc)
	}
	if len(e.Causes) == 0 {
		return c.describe(e, doc)
	}
	var all []found
	for _, cause := range e.Causes {
		all = append(all, c.collect(cause, doc)...)
	}
	return all
}

// closest returns the faults of the alternative that has the type of the value.
// If there is none, the fault lists the allowed types.
func (c *Contract) closest(e *jsonschema.ValidationError, doc document) []found {
	var want []string
	actual := ""
	for _, cause := range e.Causes {
		if t := typeFault(cause, len(e.InstanceLocation)); t != nil {
			actual, want = t.Got, append(want, t.Want...)
			continue
		}
		return c.collect(cause, doc)
	}
	if actual == "" {
		return []found{{path: e.InstanceLocation, say: "is not valid"}}
	}
	return []found{{path: e.InstanceLocation, say: typeMessage(actual, want)}}
}

// typeFault returns the fault of the value at that depth if its type is wrong.
func typeFault(e *jsonschema.ValidationError, depth int) *kind.Type {
	if t, ok := e.ErrorKind.(*kind.Type); ok && len(e.InstanceLocation) == depth {
		return t
	}
	switch e.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		all := &kind.Type{}
		for _, cause := range e.Causes {
			t := typeFault(cause, depth)
			if t == nil {
				return nil
			}
			all.Got, all.Want = t.Got, append(all.Want, t.Want...)
		}
		return all
	}
	if len(e.Causes) == 1 {
		return typeFault(e.Causes[0], depth)
	}
	return nil
}

// describe explains one validation error.
func (c *Contract) describe(e *jsonschema.ValidationError, doc document) []found {
	say, rank := "is not valid", 5
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		say, rank = typeMessage(k.Got, k.Want), 0
	case *kind.Required:
		return each(e, k.Missing, func(string) string { return "is required" })
	case *kind.AdditionalProperties:
		return each(e, k.Properties, c.unknownField(e.SchemaURL))
	case *kind.Enum:
		say, rank = got(k.Got)+"must be one of "+listOf(k.Want), 1
	case *kind.Const:
		say, rank = fmt.Sprintf("%smust be %v", got(k.Got), k.Want), 1
	case *kind.MinLength:
		say, rank = atLeast(k.Want, k.Got, "character"), 2
	case *kind.MaxLength:
		say, rank = atMost(k.Want, k.Got, "character"), 2
	case *kind.MinItems:
		if doc.lengths[lengthKey(e.InstanceLocation)] > k.Got {
			return nil // the items were truncated
		}
		say, rank = atLeast(k.Want, k.Got, "item"), 2
	case *kind.MaxItems:
		say, rank = atMost(k.Want, max(k.Got, doc.lengths[lengthKey(e.InstanceLocation)]), "item"), 2
	case *kind.MinProperties:
		say, rank = atLeast(k.Want, k.Got, "field"), 2
	case *kind.MaxProperties:
		say, rank = atMost(k.Want, max(k.Got, doc.lengths[lengthKey(e.InstanceLocation)]), "field"), 2
	case *kind.UniqueItems:
		say = fmt.Sprintf("contains the same item twice, at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Minimum:
		say = "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		say = "must be at most " + decimal(k.Want)
	case *kind.Pattern:
		if say, rank = patternMessage(k.Want), 3; k.Want == mailboxPattern {
			say = notAnAddress + Quoted(k.Got)
		}
	case *kind.Format:
		say, rank = formatMessage(k), 4
	}
	return []found{{e.InstanceLocation, say, rank}}
}

// each returns a fault for each named field of an object.
func each(e *jsonschema.ValidationError, names []string, say func(name string) string) []found {
	var all []found
	for _, name := range slices.Sorted(slices.Values(names))[:min(len(names), MaxFaults)] {
		all = append(all, found{path: append(slices.Clone(e.InstanceLocation), name), say: say(name)})
	}
	return all
}

// unknownField returns a function that explains why a schema does not allow a
// field.
func (c *Contract) unknownField(schemaURL string) func(name string) string {
	_, pointer, _ := strings.Cut(schemaURL, "#")
	schema := object(c.at("#" + pointer))
	for pattern := range object(schema["patternProperties"]) {
		return func(string) string { return "is not an allowed name: a name " + patternMessage(pattern) }
	}
	known := slices.Sorted(maps.Keys(object(schema["properties"])))
	return func(name string) string { return "is not a field of this request" + nearname.Hint(name, known) }
}

func patternMessage(pattern string) string {
	if rule, ok := patternRules[pattern]; ok {
		return rule
	}
	return "must match " + pattern
}

func formatMessage(k *kind.Format) string {
	switch k.Want {
	case "email":
		return notAnAddress + Quoted(k.Got)
	case "byte":
		return "is not base64 with padding"
	case "date-time":
		return "is not a time with a date and an offset, like 2027-01-31T10:00:00Z" + Quoted(k.Got)
	case "date":
		return "is not a date, like 2027-01-31" + Quoted(k.Got)
	}
	return "is not a valid " + k.Want + Quoted(k.Got)
}

// typeNames are the JSON types with their articles.
var typeNames = map[string]string{
	"string": "a string", "object": "an object", "array": "an array", "boolean": "a boolean", "null": "null",
	"number": "a number", "integer": "a whole number",
}

func typeMessage(got string, want []string) string {
	var names []string
	for _, w := range want {
		if name := typeNames[w]; !slices.Contains(names, name) && w != "null" {
			names = append(names, name)
		}
	}
	if slices.Contains(want, "null") {
		names = append(names, "null")
	}
	if got == "number" && slices.Contains(want, "integer") {
		return "must be a whole number"
	}
	return "must be " + either(names) + ", not " + typeNames[got]
}

// either joins alternatives with "or".
func either(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func atLeast(want, got int, unit string) string {
	if got == 0 {
		return "must not be empty"
	}
	return fmt.Sprintf("must have at least %s, but has %d", count(want, unit), got)
}

func atMost(want, got int, unit string) string {
	return fmt.Sprintf("must have at most %s, but has %d", count(want, unit), got)
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.Itoa(n) + " " + unit + "s"
}

func decimal(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return strings.TrimRight(r.FloatString(6), "0")
}

func listOf(values []any) string {
	var names []string
	for _, v := range values {
		names = append(names, fmt.Sprint(v))
	}
	return strings.Join(names, ", ")
}

// maxValue limits the length of values in messages.
const maxValue = 60

// Quoted formats a short text to append to a message, so that the reader sees
// what arrived.
func Quoted(v any) string {
	if s, ok := v.(string); ok && s != "" && len(s) <= maxValue {
		return ": " + strconv.Quote(s)
	}
	return ""
}

// got formats a short text to put before a message.
func got(v any) string {
	if text := Quoted(v); text != "" {
		return "is " + strings.TrimPrefix(text, ": ") + ", but "
	}
	return ""
}
