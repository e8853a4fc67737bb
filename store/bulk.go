package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// statements are prepared for as long as the store is open. database/sql makes
// each again on a connection that does not have it yet.
type statements struct {
	db  *sqlx.DB
	all []*sql.Stmt
	err error // the first fault in preparing; the rest is then not tried
}

// add prepares query while no transaction is open: SQLite has one connection
// for both.
func (s *statements) add(ctx context.Context, query string) *sql.Stmt {
	if s.err != nil {
		return nil
	}
	st, err := s.db.PrepareContext(ctx, query)
	if err != nil {
		s.err = fmt.Errorf("prepare %q: %w", query, err)
		return nil
	}
	s.all = append(s.all, st)
	return st
}

func (s *statements) close() (errs []error) {
	for _, st := range s.all {
		errs = append(errs, st.Close())
	}
	s.all = nil
	return errs
}

// bulkInsert writes many rows of one table in few statements: there is one for
// each of a few numbers of rows, so that all of them can be prepared.
type bulkInsert struct {
	columns int
	sizes   []int // falling, ending in 1
	stmts   []*sql.Stmt
}

func (s *statements) addBulk(ctx context.Context, d engine.Engine, table, columns string) bulkInsert {
	return s.addUpsert(ctx, d, table, columns, "")
}

// addUpsert is addBulk with what to do about rows that are there already.
func (s *statements) addUpsert(ctx context.Context, d engine.Engine, table, columns, conflict string) bulkInsert {
	b := bulkInsert{columns: strings.Count(columns, ",") + 1, sizes: d.BulkSizes()}
	for _, rows := range b.sizes {
		b.stmts = append(b.stmts, s.add(ctx, bulkQuery(d, table, columns, b.columns, rows)+conflict))
	}
	return b
}

func bulkQuery(d engine.Engine, table, columns string, width, rows int) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "INSERT INTO %s (%s) VALUES ", table, columns)
	for row := range rows {
		if row > 0 {
			sb.WriteString(", ")
		}
		sb.WriteString("(")
		for col := range width {
			if col > 0 {
				sb.WriteString(", ")
			}
			sb.WriteString(d.Placeholder(row*width + col + 1))
		}
		sb.WriteString(")")
	}
	return sb.String()
}

// exec inserts args, which holds the rows one after the other.
func (b *bulkInsert) exec(ctx context.Context, tx *sqlx.Tx, args []any) error {
	for i, rows := range b.sizes {
		n := rows * b.columns
		if len(args) < n {
			continue
		}
		st := tx.StmtContext(ctx, b.stmts[i])
		for ; len(args) >= n; args = args[n:] {
			if _, err := st.ExecContext(ctx, args[:n]...); err != nil {
				return err
			}
		}
	}
	return nil
}
