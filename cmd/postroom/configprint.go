package main

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"text/tabwriter"

	"github.com/postroom/postroom/internal/doctor"
	"github.com/postroom/postroom/internal/web"
	"github.com/postroom/postroom/store"
)

// print writes every setting with its effective value and source, one per line,
// without secrets.
func (c Config) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, s := range c.inForce() {
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, s.Value, s.Source) // reported by Flush
	}
	return t.Flush()
}

// inForce returns every setting with its effective value and source, without secrets.
func (c Config) inForce() []web.Setting {
	var all []web.Setting
	for _, s := range settings() {
		value, origin := c.shown(s), c.origin[s.field]
		if origin == "default" && s.def == "" {
			origin = "default: " + s.unset
		}
		all = append(all, web.Setting{Name: s.env, Value: value, Source: origin})
	}
	return all
}

// system describes the installation for the dashboard.
func (n *node) system(s *store.Store) *web.System {
	to := ""
	if n.cfg.isPublic() {
		to = someServer
	}
	return &web.System{
		Version: programVersion(), Settings: n.cfg.inForce(), EmailRetention: n.cfg.EmailRetention.duration(),
		Check: func(ctx context.Context) (doctor.Report, error) {
			look, err := n.cfg.doctor(nil, to)
			if err != nil {
				return doctor.Report{}, err
			}
			look.Store = s
			return doctor.Run(ctx, look), nil
		},
	}
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
