package store

import (
	"strconv"
	"strings"
)

// where builds the WHERE clause of a list whose filters are optional.
type where struct {
	conds []string
	args  []any
}

// arg adds a value and returns its placeholder.
func (w *where) arg(v any) string {
	w.args = append(w.args, v)
	return "$" + strconv.Itoa(len(w.args))
}

// add adds a condition, in which each ? stands for the next of args.
func (w *where) add(cond string, args ...any) {
	for _, a := range args {
		cond = strings.Replace(cond, "?", w.arg(a), 1)
	}
	w.conds = append(w.conds, cond)
}

// in adds the condition that column is one of values. None matches nothing.
func (w *where) in(column string, values []string) {
	if len(values) == 0 {
		w.conds = append(w.conds, "1 = 0")
		return
	}
	ps := make([]string, len(values))
	for i, v := range values {
		ps[i] = w.arg(v)
	}
	w.conds = append(w.conds, column+" IN ("+strings.Join(ps, ", ")+")")
}

func (w *where) sql() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

// notIn adds the condition that column is none of values.
func (w *where) notIn(column string, values []string) {
	ps := make([]string, len(values))
	for i, v := range values {
		ps[i] = w.arg(v)
	}
	w.conds = append(w.conds, column+" NOT IN ("+strings.Join(ps, ", ")+")")
}
