package engine

import (
	"context"
	"database/sql"
	"strconv"
	"sync"

	"github.com/jmoiron/sqlx"
)

// maxPrepared bounds how many queries a store keeps prepared. Queries come in few
// shapes; the rest run unprepared.
const maxPrepared = 256

// Reads is the pool that reads. It prepares each query once, because compiling its text
// takes SQLite longer than running it. database/sql makes a statement again on a
// connection that does not have it yet. The methods of DB that Reads does not replace
// do not prepare.
type Reads struct {
	*sqlx.DB
	text  func(query string) string
	mu    sync.RWMutex
	stmts map[string]*sqlx.Stmt // nil once closed
}

// NewReads returns a Reads on a pool. text is Dialect.Text.
func NewReads(db *sqlx.DB, text func(query string) string) *Reads {
	return &Reads{DB: db, text: text, stmts: map[string]*sqlx.Stmt{}}
}

// prepared returns the statement of a query, or nil when it is not to be
// prepared.
func (r *Reads) prepared(ctx context.Context, query string) (*sqlx.Stmt, error) {
	r.mu.RLock()
	st, full := r.stmts[query], r.stmts == nil || len(r.stmts) >= maxPrepared
	r.mu.RUnlock()
	if st != nil || full {
		return st, nil
	}
	st, err := r.DB.PreparexContext(ctx, r.text(query))
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.stmts[query]
	if known == nil && r.stmts != nil && len(r.stmts) < maxPrepared {
		r.stmts[query] = st
		return st, nil
	}
	return known, st.Close() //nolint:sqlclosecheck // someone else was faster
}

// GetContext reads one row.
func (r *Reads) GetContext(ctx context.Context, dest any, query string, args ...any) error {
	st, err := r.prepared(ctx, query) //nolint:sqlclosecheck // it is kept until close
	switch {
	case err != nil:
		return err
	case st == nil:
		return r.DB.GetContext(ctx, dest, query, args...)
	}
	return st.GetContext(ctx, dest, args...)
}

// SelectContext reads all rows.
func (r *Reads) SelectContext(ctx context.Context, dest any, query string, args ...any) error {
	st, err := r.prepared(ctx, query) //nolint:sqlclosecheck // it is kept until close
	switch {
	case err != nil:
		return err
	case st == nil:
		return r.DB.SelectContext(ctx, dest, query, args...)
	}
	return st.SelectContext(ctx, dest, args...)
}

// QueryContext runs a query for its caller to read. The caller closes the rows.
func (r *Reads) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	st, err := r.prepared(ctx, query) //nolint:sqlclosecheck // it is kept until close
	switch {
	case err != nil:
		return nil, err
	case st == nil:
		return r.DB.QueryContext(ctx, query, args...)
	}
	return st.QueryContext(ctx, args...)
}

// Close closes the statements and the pool, and returns the error of each.
func (r *Reads) Close() (errs []error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, st := range r.stmts {
		errs = append(errs, st.Close())
	}
	r.stmts = nil
	return append(errs, r.DB.Close())
}

// Numbers is a list of numbers, separated by commas.
func Numbers(list []int64) string {
	b := make([]byte, 0, 8*len(list))
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(b)
}
