package batch

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// Statements are prepared statements that stay open as long as the store.
// database/sql prepares each again on a connection that does not have it yet.
type Statements struct {
	Err error // the first error; after it, nothing more is prepared

	db      *sqlx.DB
	engine  engine.Engine
	all     []*sql.Stmt
	arrays  arrays
	inserts int // that arrays has
}

// NewStatements returns an empty set of statements for the pool that writes.
func NewStatements(db *sqlx.DB, e engine.Engine) *Statements { return &Statements{db: db, engine: e} }

// Add prepares query. No transaction may be open: SQLite has one connection for
// both.
func (s *Statements) Add(ctx context.Context, query string) *sql.Stmt {
	if s.Err != nil {
		return nil
	}
	st, err := s.db.PrepareContext(ctx, query)
	if err != nil {
		s.Err = fmt.Errorf("prepare %q: %w", query, err)
		return nil
	}
	s.all = append(s.all, st)
	return st
}

// Close closes all statements.
func (s *Statements) Close() (errs []error) {
	for _, st := range s.all {
		errs = append(errs, st.Close())
	}
	s.all = nil
	return append(errs, s.arrays.close()...)
}

// Rows is a statement for a set of rows. It is prepared for a few numbers of rows;
// a larger set is split.
type Rows struct {
	Columns int
	sizes   []int // falling, ending in 1
	stmts   []*sql.Stmt
}

// keySizes are the numbers of keys that Lookup prepares a query for.
var keySizes = []int{64, 16, 4, 1}

// Update prepares a query in which {rows} stands for rows whose columns have these
// types.
func (s *Statements) Update(ctx context.Context, query string, types ...string) Rows {
	return s.rows(ctx, query, s.engine.BulkSizes(), types)
}

// Lookup prepares a query in which {rows} stands for keys of one or two numbers,
// and {n} for the parameter after them.
func (s *Statements) Lookup(ctx context.Context, width int, query string) Rows {
	return s.rows(ctx, query, keySizes, slices.Repeat([]string{"bigint"}, width))
}

func (s *Statements) rows(ctx context.Context, query string, sizes []int, types []string) Rows {
	r := Rows{Columns: len(types), sizes: sizes}
	for _, size := range sizes {
		text := strings.NewReplacer("{rows}", Values(s.engine, size, types), "{n}", s.engine.Placeholder(size*len(types)+1)).Replace(query)
		r.stmts = append(r.stmts, s.Add(ctx, text))
	}
	return r
}

// Values writes the placeholders of rows for VALUES or IN. A column with a type is
// cast to it.
func Values(d engine.Dialect, rows int, types []string) string {
	var sb strings.Builder
	for n := range rows * len(types) {
		col := n % len(types)
		switch {
		case col > 0:
			sb.WriteString(", ")
		case n > 0:
			sb.WriteString("), (")
		default:
			sb.WriteString("(")
		}
		if typ := types[col]; typ != "" {
			sb.WriteString("cast(" + d.Placeholder(n+1) + " AS " + typ + ")")
		} else {
			sb.WriteString(d.Placeholder(n + 1))
		}
	}
	sb.WriteString(")")
	return sb.String()
}

// Exec runs the statement for args, which holds the rows one after the other.
func (r *Rows) Exec(ctx context.Context, tx *sqlx.Tx, args []any) error {
	_, err := r.Count(ctx, tx, args)
	return err
}

// Count is Exec that returns the number of rows that were inserted or updated.
func (r *Rows) Count(ctx context.Context, tx *sqlx.Tx, args []any) (changed int64, err error) {
	err = r.split(args, func(st *sql.Stmt, args []any) error {
		n, err := affected(tx.StmtContext(ctx, st).ExecContext(ctx, args...))
		changed += n
		return err
	})
	return changed, err
}

func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// Each is Exec for a statement that returns rows: it calls scan for each.
func (r *Rows) Each(ctx context.Context, tx *sqlx.Tx, args []any, scan func(*sql.Rows) error) error {
	return r.split(args, func(st *sql.Stmt, args []any) error { return Scan(ctx, tx.StmtContext(ctx, st), args, scan) })
}

func (r *Rows) split(args []any, do func(st *sql.Stmt, args []any) error) error {
	for i, size := range r.sizes {
		for n := size * r.Columns; len(args) >= n; args = args[n:] {
			if err := do(r.stmts[i], args[:n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Find runs a Lookup for keys, which are of one number unless the second is used,
// and calls scan for each row. more is the parameter after the keys. Keys of zero,
// which no row has, fill up the last statement.
func (r *Rows) Find(ctx context.Context, tx *sqlx.Tx, keys [][2]int64, scan func(*sql.Rows) error, more ...any) error {
	for len(keys) > 0 {
		// The largest size that the keys fill at least half.
		i := slices.IndexFunc(r.sizes, func(size int) bool { return size <= 2*len(keys)-1 || size == 1 })
		size := r.sizes[i]
		args := make([]any, 0, size*r.Columns+len(more))
		for n := range size {
			var key [2]int64
			if n < len(keys) {
				key = keys[n]
			}
			for _, number := range key[:r.Columns] {
				args = append(args, number)
			}
		}
		if err := Scan(ctx, tx.StmtContext(ctx, r.stmts[i]), append(args, more...), scan); err != nil {
			return err
		}
		keys = keys[min(size, len(keys)):]
	}
	return nil
}

// Scan runs a statement and calls scan for each row.
func Scan(ctx context.Context, st *sql.Stmt, args []any, scan func(*sql.Rows) error) error {
	rows, err := st.QueryContext(ctx, args...)
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

// Sorted returns keys in rising order without duplicates.
func Sorted(keys [][2]int64) [][2]int64 {
	slices.SortFunc(keys, func(x, y [2]int64) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) })
	return slices.Compact(keys)
}
