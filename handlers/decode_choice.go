package handlers

import (
	"strings"

	"github.com/postroom/postroom/gen"
)

// undocumented is what is said of a value outside an enum when its name does
// not tell which enum it is: each list has a status of its own.
const undocumented = "is not one of the documented values"

// choices are the values of the fields and parameters whose name stands for one
// enum in the whole contract.
var choices = map[string]string{
	"direction":   list(gen.Direction("").AllValues()),
	"events":      list(gen.EventType("").AllValues()),
	"event_type":  list(gen.EventType("").AllValues()),
	"has":         list(gen.WaitHas("").AllValues()),
	"mode":        list(gen.ApiKeyCreateMode("").AllValues()),
	"scopes":      list(gen.ApiKeyScope("").AllValues()),
	"send_policy": list(gen.SendPolicy("").AllValues()),
}

func list[T ~string](values []T) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// reasonAt is reason for a fault at a path, and names the values that there
// are to choose from.
func reasonAt(path, text string) string {
	say := reason(text)
	if say != undocumented {
		return say
	}
	name := path[strings.LastIndexByte(path, '.')+1:]
	name, _, _ = strings.Cut(name, "[")
	if values, ok := choices[name]; ok {
		return "must be one of " + values
	}
	return say
}
