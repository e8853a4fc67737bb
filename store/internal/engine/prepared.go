package engine

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"sync"

	"github.com/jmoiron/sqlx"
)

// maxPrepared bounds how many queries a pool keeps prepared. Queries come in few
// shapes; the rest run unprepared.
const maxPrepared = 256

// statements are the prepared statements of a pool, by their text: compiling a text
// takes SQLite longer than running it. database/sql prepares a statement again on a
// connection that does not have it yet.
type statements struct {
	db    *sqlx.DB
	text  func(query string) string // Dialect.Text
	mu    sync.RWMutex
	stmts map[string]*sqlx.Stmt // nil once closed
}

// find returns the statement of a query, or nil and whether it may be prepared.
func (p *statements) find(query string) (st *sqlx.Stmt, may bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	st = p.stmts[query]
	return st, st == nil && p.stmts != nil && len(p.stmts) < maxPrepared
}

// prepare prepares a query. It returns nil if the pool keeps as many statements as it may.
func (p *statements) prepare(ctx context.Context, query string) (*sqlx.Stmt, error) {
	st, err := p.db.PreparexContext(ctx, p.text(query))
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.stmts[query]
	if known == nil && p.stmts != nil && len(p.stmts) < maxPrepared {
		p.stmts[query] = st
		return st, nil
	}
	return known, st.Close() //nolint:sqlclosecheck // someone else was faster
}

// Close closes the statements.
func (p *statements) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, st := range p.stmts {
		errs = append(errs, st.Close())
	}
	p.stmts = nil
	return errors.Join(errs...)
}

// Reads is the pool that reads. It prepares each query at its first use. The methods of
// DB that Reads does not replace do not prepare.
type Reads struct {
	*sqlx.DB
	statements
}

// NewReads returns a Reads on a pool. text is Dialect.Text.
func NewReads(db *sqlx.DB, text func(query string) string) *Reads {
	return &Reads{DB: db, statements: statements{db: db, text: text, stmts: map[string]*sqlx.Stmt{}}}
}

// prepared returns the statement of a query, or nil when it is not to be
// prepared.
func (r *Reads) prepared(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if st, may := r.find(query); !may {
		return st, nil
	}
	return r.prepare(ctx, query)
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

// Row reads one row into dest, without reflection. The error is sql.ErrNoRows if there
// is none.
func (r *Reads) Row(ctx context.Context, query string, args []any, dest ...any) error {
	st, err := r.prepared(ctx, query) //nolint:sqlclosecheck // it is kept until close
	switch {
	case err != nil:
		return err
	case st == nil:
		return r.DB.QueryRowContext(ctx, query, args...).Scan(dest...)
	}
	return st.Stmt.QueryRowContext(ctx, args...).Scan(dest...)
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
func (r *Reads) Close() []error { return []error{r.statements.Close(), r.DB.Close()} }

// Prepared runs the statements of transactions. A statement is prepared after its first
// use, between two transactions: SQLite has one connection for both.
//
// The transaction watches the context. A statement does not: SQLite rolls back the whole
// transaction, with the changes of others in it, when a statement is interrupted.
type Prepared struct {
	statements
	wanted map[string]struct{} // run unprepared so far
}

// NewPrepared returns a Prepared for the pool that writes. text is Dialect.Text.
func NewPrepared(db *sqlx.DB, text func(query string) string) *Prepared {
	return &Prepared{statements: statements{db: db, text: text, stmts: map[string]*sqlx.Stmt{}}, wanted: map[string]struct{}{}}
}

// Prepare prepares what was used unprepared. No transaction of the caller may be open.
func (p *Prepared) Prepare(ctx context.Context) error {
	for query := range p.take() {
		if _, err := p.prepare(ctx, query); err != nil { //nolint:sqlclosecheck // it is kept until Close
			return err
		}
	}
	return nil
}

func (p *Prepared) take() map[string]struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.wanted) == 0 {
		return nil
	}
	wanted := p.wanted
	p.wanted = map[string]struct{}{}
	return wanted
}

// of returns the statement in the transaction, or nil when it is not prepared.
func (p *Prepared) of(ctx context.Context, tx *sqlx.Tx, query string) *sqlx.Stmt {
	st, may := p.find(query)
	if may {
		p.mu.Lock()
		p.wanted[query] = struct{}{}
		p.mu.Unlock()
	}
	if st == nil {
		return nil
	}
	return tx.StmtxContext(ctx, st)
}

// Exec runs a statement that returns no rows.
func (p *Prepared) Exec(ctx context.Context, tx *sqlx.Tx, query string, args ...any) (sql.Result, error) {
	ctx = context.WithoutCancel(ctx)
	if st := p.of(ctx, tx, query); st != nil { //nolint:sqlclosecheck // the transaction closes it
		return st.ExecContext(ctx, args...)
	}
	return tx.ExecContext(ctx, p.text(query), args...)
}

// Query runs a query for its caller to read. The caller closes the rows.
func (p *Prepared) Query(ctx context.Context, tx *sqlx.Tx, query string, args ...any) (*sqlx.Rows, error) {
	ctx = context.WithoutCancel(ctx)
	if st := p.of(ctx, tx, query); st != nil { //nolint:sqlclosecheck // the transaction closes it
		return st.QueryxContext(ctx, args...)
	}
	return tx.QueryxContext(ctx, p.text(query), args...)
}

// Row reads one row into dest, without reflection. The error is sql.ErrNoRows if there
// is none.
func (p *Prepared) Row(ctx context.Context, tx *sqlx.Tx, query string, args []any, dest ...any) error {
	ctx = context.WithoutCancel(ctx)
	if st := p.of(ctx, tx, query); st != nil { //nolint:sqlclosecheck // the transaction closes it
		return st.Stmt.QueryRowContext(ctx, args...).Scan(dest...)
	}
	return tx.QueryRowContext(ctx, p.text(query), args...).Scan(dest...)
}

// Get reads one row. The error is sql.ErrNoRows if there is none.
func (p *Prepared) Get(ctx context.Context, tx *sqlx.Tx, dest any, query string, args ...any) error {
	ctx = context.WithoutCancel(ctx)
	if st := p.of(ctx, tx, query); st != nil { //nolint:sqlclosecheck // the transaction closes it
		return st.GetContext(ctx, dest, args...)
	}
	return tx.GetContext(ctx, dest, p.text(query), args...)
}

// Select reads all rows.
func (p *Prepared) Select(ctx context.Context, tx *sqlx.Tx, dest any, query string, args ...any) error {
	ctx = context.WithoutCancel(ctx)
	if st := p.of(ctx, tx, query); st != nil { //nolint:sqlclosecheck // the transaction closes it
		return st.SelectContext(ctx, dest, args...)
	}
	return tx.SelectContext(ctx, dest, p.text(query), args...)
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
