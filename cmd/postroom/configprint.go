package main

import (
	"fmt"
	"io"
	"reflect"
	"text/tabwriter"
)

// print writes every setting with its effective value and source, one per line,
// without secrets.
func (c Config) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range settings() {
		value, origin := c.shown(s), c.origin[s.field]
		if origin == "default" && s.def == "" {
			origin = "default: " + s.unset
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", s.env, value, origin) // reported by Flush
	}
	return t.Flush()
}

// shown formats the value of s without secrets.
func (c Config) shown(s setting) string {
	v := reflect.ValueOf(c).FieldByName(s.field)
	switch {
	case v.IsZero() && v.Kind() != reflect.Bool && v.Type() != reflect.TypeFor[logLevel]():
		return "-"
	case s.hide == "all":
		return hidden
	}
	return fmt.Sprint(v.Interface())
}
