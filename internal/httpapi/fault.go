package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/postroom/postroom/internal/nearname"
)

// faults validates a document. It returns one fault for each value.
func (c *requestSchemas) faults(key string, doc document) []Fault {
	failed, ok := errors.AsType[*jsonschema.ValidationError](c.schema(key).Validate(doc.root))
	if !ok {
		return nil
	}
	var all []placed
	for _, e := range leaves(failed) {
		for _, f := range c.describe(e, doc) {
			f.Param, f.place = doc.locate(f.path)
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	all = slices.CompactFunc(all, func(a, b placed) bool { return a.place == b.place })
	var out []Fault
	for _, f := range all[:min(len(all), MaxFaults)] {
		out = append(out, f.Fault)
	}
	return out
}

// placed is a fault with the path of its value.
type placed struct {
	Fault
	path  []string
	place string // sorts as the body does
}

// locate formats a path as to[1].email, and as a place. Missing fields come last.
func (doc document) locate(path []string) (param, place string) {
	v := doc.root
	for i, name := range path {
		if list, ok := v.([]any); ok {
			n, _ := strconv.Atoi(name) // the validator writes indexes
			param, place, v = JoinPath(param, "["+name+"]"), fmt.Sprintf("%s/%06d", place, n), list[n]
			continue
		}
		order, sent := doc.order[name]
		if i > 0 {
			order = 0
		} else if !sent {
			order = maxFields
		}
		param, place, v = JoinPath(param, name), fmt.Sprintf("%s/%04d%s", place, order, name), object(v)[name]
	}
	return param, place
}

// leaves returns the errors that have no causes. Of alternatives it returns those of
// the one that has the type of the value, or else one error with all their types.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	var types kind.Type
	for _, cause := range e.Causes {
		below := leaves(cause)
		switch e.ErrorKind.(type) {
		case *kind.OneOf, *kind.AnyOf:
			t, ok := below[0].ErrorKind.(*kind.Type)
			if !ok || len(below[0].InstanceLocation) > len(e.InstanceLocation) {
				return below
			}
			types.Got, types.Want = t.Got, append(types.Want, t.Want...)
			all = []*jsonschema.ValidationError{{InstanceLocation: e.InstanceLocation, ErrorKind: &types}}
		default:
			all = append(all, below...)
		}
	}
	return all
}

// JoinPath adds a name, or an index such as [3], to a path.
func JoinPath(prefix, name string) string {
	if prefix == "" || name == "" || strings.HasPrefix(name, "[") {
		return prefix + name
	}
	return prefix + "." + name
}

// describe explains one validation error. Of a document that is cut, it does not
// report what is missing below the root.
func (c *requestSchemas) describe(e *jsonschema.ValidationError, doc document) []placed {
	isCut := doc.cut && len(e.InstanceLocation) > 0
	say := ""
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		say = typeMessage(k.Got, k.Want)
	case *kind.Required:
		if isCut {
			return nil
		}
		return each(e, k.Missing, func(string) string { return "is required" })
	case *kind.AdditionalProperties:
		return each(e, k.Properties, c.unknownField(e.SchemaURL))
	case *kind.Enum:
		list := fmt.Sprintf(strings.Repeat(", %v", len(k.Want)), k.Want...)
		say = got(k.Got) + "must be one of " + strings.TrimPrefix(list, ", ")
	case *kind.MinLength:
		if s := c.compile(e.SchemaURL); k.Got > 0 && s.Pattern != nil && s.Pattern.String() == mailboxPattern {
			return nil // not an email address says more
		}
		say = atLeast(k.Want, k.Got, "character")
	case *kind.MaxLength:
		say = atMost(k.Want, k.Got, "character", false)
	case *kind.MinItems:
		if isCut {
			return nil
		}
		say = atLeast(k.Want, k.Got, "item")
	case *kind.MaxItems:
		say = atMost(k.Want, k.Got, "item", isCut)
	case *kind.MaxProperties:
		say = atMost(k.Want, k.Got, "field", isCut)
	case *kind.UniqueItems:
		say = fmt.Sprintf("contains the same item twice, at %d and %d", k.Duplicates[0], k.Duplicates[1])
	case *kind.Minimum:
		say = "must be at least " + k.Want.RatString()
	case *kind.Maximum:
		say = "must be at most " + k.Want.RatString()
	case *kind.Pattern:
		say = patternMessage(k.Want)
		if k.Want == mailboxPattern {
			say += Quoted(k.Got)
		}
	case *kind.Format:
		say = cmp.Or(formatRules[k.Want], "is not a valid "+k.Want)
		if text, _ := k.Got.(string); k.Want == "date-time" && spaceForPlus.MatchString(text) {
			say = "has a space in its offset: write + as %2B in a URL"
		}
		if k.Want != "byte" {
			say += Quoted(k.Got)
		}
	default:
		say = "is not valid: " + k.LocalizedString(message.NewPrinter(language.English))
	}
	return []placed{{Fault: Fault{Message: say}, path: e.InstanceLocation}}
}

// each returns a fault for each named field of an object.
func each(e *jsonschema.ValidationError, names []string, say func(name string) string) []placed {
	var all []placed
	for _, name := range slices.Sorted(slices.Values(names))[:min(len(names), MaxFaults)] {
		all = append(all, placed{Fault: Fault{Message: say(name)}, path: append(slices.Clone(e.InstanceLocation), name)})
	}
	return all
}

// unknownField returns a function that explains why a schema does not allow a
// field.
func (c *requestSchemas) unknownField(schemaURL string) func(name string) string {
	schema := c.compile(schemaURL)
	for pattern := range schema.PatternProperties {
		return func(string) string {
			return "is not an allowed name: a name " + patternMessage(pattern.String())
		}
	}
	known := slices.Sorted(maps.Keys(schema.Properties))
	return func(name string) string { return "is not a field of this request" + nearname.Hint(name, known) }
}

// mailboxPattern is that of an address with or without a name. The handler checks
// the rest of the grammar.
const mailboxPattern = `^[^\x00-\x1F\x7F\x85]*[^\x00-\x1F\x7F\x85 @]@[^\x00-\x1F\x7F\x85 @<>]+>? *$`

const notAnAddress = "is not an email address"

// patternRules describe the patterns of the contract.
var patternRules = map[string]string{
	strictOneLine:  "must not contain line breaks or other control characters",
	mailboxPattern: notAnAddress,
	`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`: "may only have the letters a to z, digits, hyphens and underscores, " +
		"and single dots between them",
	`^https?://`:       "must start with http:// or https://",
	`^.+:`:             "must have the form name:value",
	`^[0-9]+$`:         "may only have digits",
	`^.{1,40}$`:        "must have 1 to 40 characters",
	`^[!-9;-~]{1,76}$`: "must have 1 to 76 visible ASCII characters and no colon",
}

func patternMessage(pattern string) string {
	return cmp.Or(patternRules[pattern], "must match "+pattern)
}

var formatRules = map[string]string{
	"email":     notAnAddress,
	"byte":      "is not base64 with padding",
	"date-time": "is not a time with a date and an offset, like 2027-01-31T10:00:00Z",
	"date":      "is not a date, like 2027-01-31",
}

// spaceForPlus matches a time with an offset whose plus sign a URL has turned into a space.
var spaceForPlus = regexp.MustCompile(`T[0-9:.]+ [0-9]{2}:?[0-9]{2}$`)

// types are the JSON types with their articles.
var types = [...]struct{ name, say string }{
	{"string", "a string"}, {"object", "an object"}, {"array", "an array"}, {"number", "a number"},
	{"integer", "a whole number"}, {"boolean", "a boolean"}, {"null", "null"},
}

func typeMessage(got string, want []string) string {
	if got == "number" && slices.Contains(want, "integer") {
		return "must be a whole number"
	}
	var names []string
	for _, t := range types {
		if slices.Contains(want, t.name) {
			names = append(names, t.say)
		}
		if t.name == got {
			got = t.say
		}
	}
	if last := len(names) - 1; last > 0 {
		names = []string{strings.Join(names[:last], ", "), names[last]}
	}
	return "must be " + strings.Join(names, " or ") + ", not " + got
}

func atLeast(want, got int, unit string) string {
	if got == 0 {
		return "must not be empty"
	}
	return fmt.Sprintf("must have at least %s, but has %d", count(want, unit), got)
}

// atMost leaves out how many there are if that is not known.
func atMost(want, got int, unit string, unknown bool) string {
	say := "must have at most " + count(want, unit)
	if !unknown {
		say += ", but has " + strconv.Itoa(got)
	}
	return say
}

func count(n int, unit string) string {
	if n == 1 {
		return "1 " + unit
	}
	return strconv.Itoa(n) + " " + unit + "s"
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
