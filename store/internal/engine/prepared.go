package engine

import (
	"context"
	"database/sql"
	"errors"
	"sync"

	"github.com/jmoiron/sqlx"
)

// Prepared runs the statements of transactions, and prepares each text once. A
// statement is prepared after its first use, between two transactions: SQLite has one
// connection for both. database/sql prepares it again on a connection that does not
// have it yet.
//
// The transaction watches the context. A statement does not: SQLite rolls back the whole
// transaction, with the changes of others in it, when a statement is interrupted.
type Prepared struct {
	db   *sqlx.DB
	text func(query string) string

	mu     sync.Mutex
	stmts  map[string]*sqlx.Stmt // nil once closed
	wanted map[string]struct{}   // run unprepared so far
}

// NewPrepared returns a Prepared for the pool that writes. text is Dialect.Text.
func NewPrepared(db *sqlx.DB, text func(query string) string) *Prepared {
	return &Prepared{db: db, text: text, stmts: map[string]*sqlx.Stmt{}, wanted: map[string]struct{}{}}
}

// Prepare prepares what was used unprepared. No transaction of the caller may be open.
func (p *Prepared) Prepare(ctx context.Context) error {
	for query := range p.take() {
		st, err := p.db.PreparexContext(ctx, p.text(query))
		if err != nil {
			return err
		}
		if err := p.keep(query, st); err != nil { //nolint:sqlclosecheck // it is kept until Close
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

func (p *Prepared) keep(query string, st *sqlx.Stmt) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stmts == nil || p.stmts[query] != nil || len(p.stmts) >= maxPrepared {
		return st.Close()
	}
	p.stmts[query] = st
	return nil
}

// of returns the statement in the transaction, or nil when it is not prepared.
func (p *Prepared) of(ctx context.Context, tx *sqlx.Tx, query string) *sqlx.Stmt {
	p.mu.Lock()
	st := p.stmts[query]
	if st == nil && len(p.stmts) < maxPrepared {
		p.wanted[query] = struct{}{}
	}
	p.mu.Unlock()
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

// Close closes the statements.
func (p *Prepared) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, st := range p.stmts {
		errs = append(errs, st.Close())
	}
	p.stmts = nil
	return errors.Join(errs...)
}
