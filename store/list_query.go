package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// listSizes are the lengths of lists that list queries are prepared for.
var listSizes = []int{64, 16, 4, 1}

// listQuery reads by a list of keys of one or two numbers each, in few prepared
// statements: a list that fits none of the lengths is cut, and its rest filled
// up with zeros.
type listQuery struct {
	width int
	stmts []*sql.Stmt // for listSizes
}

// addList prepares query, in which {list} stands for the keys, one or two
// numbers each, and {n} for the parameter that comes after them.
func (s *statements) addList(ctx context.Context, d engine.Engine, width int, query string) listQuery {
	q := listQuery{width: width}
	for _, size := range listSizes {
		var list strings.Builder
		for i := range size * width {
			switch {
			case i == 0 && width > 1:
				list.WriteString("(")
			case i%width == 0 && width > 1:
				list.WriteString("), (")
			case i > 0:
				list.WriteString(", ")
			}
			list.WriteString("CAST(" + d.Placeholder(i+1) + " AS bigint)")
		}
		if width > 1 {
			list.WriteString(")")
		}
		text := strings.NewReplacer("{list}", list.String(), "{n}", d.Placeholder(size*width+1)).Replace(query)
		q.stmts = append(q.stmts, s.add(ctx, text))
	}
	return q
}

// each runs the query for keys and calls scan for each row that it finds. more
// follows the keys as a parameter.
func (q *listQuery) each(ctx context.Context, tx *sqlx.Tx, keys [][2]int64, scan func(*sql.Rows) error, more ...any) error {
	for len(keys) > 0 {
		i := bestSize(len(keys))
		size := listSizes[i]
		args := make([]any, 0, size*q.width+len(more))
		for n := range size {
			var key [2]int64 // no row has the number 0
			if n < len(keys) {
				key = keys[n]
			}
			for _, number := range key[:q.width] {
				args = append(args, number)
			}
		}
		if err := scanAll(ctx, tx.StmtContext(ctx, q.stmts[i]), append(args, more...), scan); err != nil {
			return err
		}
		keys = keys[min(size, len(keys)):]
	}
	return nil
}

// bestSize chooses the largest of listSizes of which at least half is used.
func bestSize(keys int) int {
	return slices.IndexFunc(listSizes, func(size int) bool { return size <= 2*keys-1 || size == 1 })
}

func scanAll(ctx context.Context, query *sql.Stmt, args []any, scan func(*sql.Rows) error) error {
	rows, err := query.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // its error is that of rows.Err
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// sorted returns keys in rising order without repeats.
func sorted(keys [][2]int64) [][2]int64 {
	slices.SortFunc(keys, func(x, y [2]int64) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) })
	return slices.Compact(keys)
}
