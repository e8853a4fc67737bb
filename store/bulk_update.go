package store

import (
	"context"
	"database/sql"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// bulkUpdate changes many rows in few statements, as bulkInsert adds them: there
// is one for each of a few numbers of rows.
type bulkUpdate struct {
	columns int
	sizes   []int // falling, ending in 1
	stmts   []*sql.Stmt
}

// addUpdate prepares query, in which {rows} stands for the rows, whose columns
// have these types.
func (s *statements) addUpdate(ctx context.Context, d engine.Engine, query string, types ...string) bulkUpdate {
	u := bulkUpdate{columns: len(types), sizes: d.BulkSizes()}
	for _, size := range u.sizes {
		rows := make([]string, size)
		for row := range rows {
			values := make([]string, len(types))
			for i, typ := range types {
				values[i] = "cast(" + d.Placeholder(row*len(types)+i+1) + " AS " + typ + ")"
			}
			rows[row] = "(" + strings.Join(values, ", ") + ")"
		}
		u.stmts = append(u.stmts, s.add(ctx, strings.Replace(query, "{rows}", strings.Join(rows, ", "), 1)))
	}
	return u
}

// each runs the query for args, which holds the rows one after the other, and
// calls scan for each row that it returns.
func (u *bulkUpdate) each(ctx context.Context, tx *sqlx.Tx, args []any, scan func(*sql.Rows) error) error {
	for i, rows := range u.sizes {
		for n := rows * u.columns; len(args) >= n; args = args[n:] {
			if err := scanAll(ctx, tx.StmtContext(ctx, u.stmts[i]), args[:n], scan); err != nil {
				return err
			}
		}
	}
	return nil
}
