package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jmoiron/sqlx"
)

// statements keeps prepared statements by their text for as long as the store
// is open. Only texts from a small closed set may go in.
type statements struct {
	db *sqlx.DB
	mu sync.Mutex
	m  map[string]*sql.Stmt
}

func newStatements(db *sqlx.DB) *statements { return &statements{db: db, m: map[string]*sql.Stmt{}} }

// in returns the prepared statement of query, bound to tx. It is prepared on
// the transaction's own connection: SQLite has only that one.
func (s *statements) get(query string) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m[query]
}

// prepare makes the statement before a transaction begins.
func (s *statements) prepare(ctx context.Context, query string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m[query] != nil {
		return nil
	}
	st, err := s.db.PrepareContext(ctx, query)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	s.m[query] = st
	return nil
}

func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, st := range s.m {
		errs = append(errs, st.Close())
	}
	s.m = nil
	return errors.Join(errs...)
}

// bulkSizes are the numbers of rows that multi-row statements are made for, so
// that each text is prepared once.
var bulkSizes = []int{64, 16, 4, 1}

// bulkInsert writes many rows of one table in few statements.
type bulkInsert struct {
	queries [4]string // by the index of bulkSizes
	columns int
}

func newBulkInsert(table, columns string) bulkInsert {
	b := bulkInsert{columns: strings.Count(columns, ",") + 1}
	for i, rows := range bulkSizes {
		var sb strings.Builder
		fmt.Fprintf(&sb, "INSERT INTO %s (%s) VALUES ", table, columns)
		for p := range rows * b.columns {
			switch {
			case p == 0:
				sb.WriteString("(")
			case p%b.columns == 0:
				sb.WriteString("), (")
			default:
				sb.WriteString(", ")
			}
			fmt.Fprintf(&sb, "$%d", p+1)
		}
		sb.WriteString(")")
		b.queries[i] = sb.String()
	}
	return b
}

// prepare makes all statements of b.
func (b *bulkInsert) prepare(ctx context.Context, s *statements) error {
	for _, q := range b.queries {
		if err := s.prepare(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// exec inserts args, which holds the rows one after the other.
func (b *bulkInsert) exec(ctx context.Context, tx *sqlx.Tx, s *statements, args []any) error {
	for i, rows := range bulkSizes {
		n := rows * b.columns
		for len(args) >= n {
			if _, err := tx.StmtContext(ctx, s.get(b.queries[i])).ExecContext(ctx, args[:n]...); err != nil {
				return err
			}
			args = args[n:]
		}
	}
	return nil
}
