package batch

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/store/internal/engine"
)

// Insert adds rows to a table. On PostgreSQL the rows travel as one array for each
// column, so that one statement serves any number of rows, and a Writer puts the
// inserts of several tables into one statement.
type Insert struct {
	Columns int

	rows Rows // on SQLite

	arrays   *arrays // on PostgreSQL
	number   int     // of the insert in arrays
	table    string
	names    string
	conflict string
	types    []engine.ColumnType
}

// Insert prepares an INSERT into the columns of a table. conflict follows the
// rows, for example ON CONFLICT DO NOTHING.
func (s *Statements) Insert(ctx context.Context, table, columns, conflict string) Insert {
	in := Insert{Columns: strings.Count(columns, ",") + 1, table: table, names: columns, conflict: conflict}
	known, err := s.engine.Columns(ctx, table)
	if err != nil && s.Err == nil {
		s.Err = fmt.Errorf("columns of %s: %w", table, err)
	}
	if known == nil {
		text := "INSERT INTO " + table + " (" + columns + ") VALUES {rows}" + conflict
		in.rows = s.rows(ctx, text, s.engine.BulkSizes(), make([]string, in.Columns))
		return in
	}
	for name := range strings.SplitSeq(columns, ", ") {
		in.types = append(in.types, known[name])
	}
	in.arrays, in.number = &s.arrays, s.inserts
	s.inserts++
	return in
}

// Exec inserts args, which holds the rows one after the other.
func (in *Insert) Exec(ctx context.Context, tx *sqlx.Tx, args []any) error {
	_, err := in.Count(ctx, tx, args)
	return err
}

// Count is Exec that returns the number of rows that were inserted or updated.
func (in *Insert) Count(ctx context.Context, tx *sqlx.Tx, args []any) (int64, error) {
	if in.arrays == nil {
		return in.rows.Count(ctx, tx, args)
	}
	w := NewWriter(tx)
	if err := w.Insert(ctx, in, args); err != nil {
		return 0, err
	}
	return w.flush(ctx)
}

// Writer inserts rows into several tables in one transaction. On SQLite it does so
// at once. On PostgreSQL it collects them, and Flush writes all with one statement.
type Writer struct {
	tx      *sqlx.Tx
	pending []pendingRows
}

type pendingRows struct {
	into *Insert
	args []any
}

// NewWriter returns a writer of the transaction.
func NewWriter(tx *sqlx.Tx) *Writer { return &Writer{tx: tx} }

// Insert adds rows: args holds them one after the other.
func (w *Writer) Insert(ctx context.Context, in *Insert, args []any) error {
	switch {
	case len(args) == 0:
		return nil
	case in.arrays == nil:
		return in.rows.Exec(ctx, w.tx, args)
	}
	for i := range w.pending {
		if p := &w.pending[i]; p.into == in {
			p.args = append(p.args, args...)
			return nil
		}
	}
	w.pending = append(w.pending, pendingRows{in, args})
	return nil
}

// Flush writes what was collected.
func (w *Writer) Flush(ctx context.Context) error {
	_, err := w.flush(ctx)
	return err
}

// flush returns the number of rows of the last table that were inserted or updated.
func (w *Writer) flush(ctx context.Context) (int64, error) {
	if len(w.pending) == 0 {
		return 0, nil
	}
	slices.SortFunc(w.pending, func(a, b pendingRows) int { return a.into.number - b.into.number })
	var args []any
	var tables uint64
	for _, p := range w.pending {
		tables |= 1 << p.into.number
		for col, typ := range p.into.types {
			array, err := appendArray(nil, typ, p.args, col, p.into.Columns)
			if err != nil {
				return 0, fmt.Errorf("insert %s: %w", p.into.table, err)
			}
			args = append(args, array)
		}
	}
	all := w.pending[0].into.arrays
	st, text := all.statement(tables, w.pending)
	w.pending = w.pending[:0]
	if st != nil {
		return affected(w.tx.StmtContext(ctx, st).ExecContext(ctx, args...))
	}
	return affected(w.tx.ExecContext(ctx, text, args...))
}

// arrays are the statements that insert arrays, by the set of their tables. A
// statement is prepared after its first use: while a transaction is open, that
// could wait for a connection that waits for the transaction.
type arrays struct {
	mu     sync.Mutex
	used   map[uint64]string // not prepared yet
	stmts  map[uint64]*sql.Stmt
	closed bool
}

func (a *arrays) statement(tables uint64, rows []pendingRows) (st *sql.Stmt, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if st := a.stmts[tables]; st != nil {
		return st, ""
	}
	text = insertText(rows)
	if a.used == nil {
		a.used = map[uint64]string{}
	}
	a.used[tables] = text
	return nil, text
}

// take returns the statements that are to be prepared.
func (a *arrays) take() map[uint64]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	used := a.used
	a.used = nil
	return used
}

// keep keeps a prepared statement, unless there is one.
func (a *arrays) keep(tables uint64, st *sql.Stmt) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.stmts[tables] != nil {
		return st.Close()
	}
	if a.stmts == nil {
		a.stmts = map[uint64]*sql.Stmt{}
	}
	a.stmts[tables] = st
	return nil
}

func (a *arrays) close() (errs []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, st := range a.stmts {
		errs = append(errs, st.Close())
	}
	a.stmts, a.closed = nil, true
	return errs
}

// Prepare prepares the statements that were used unprepared. No transaction of
// the caller may be open.
func (s *Statements) Prepare(ctx context.Context) error {
	for tables, text := range s.arrays.take() {
		st, err := s.db.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		if err := s.arrays.keep(tables, st); err != nil { //nolint:sqlclosecheck // arrays closes it
			return err
		}
	}
	return nil
}

// insertText is the statement that inserts into several tables.
func insertText(rows []pendingRows) string {
	inserts := make([]string, len(rows))
	param, last := 0, len(rows)-1
	for i, p := range rows {
		arrays := make([]string, len(p.into.types))
		for col, typ := range p.into.types {
			param++
			arrays[col] = fmt.Sprintf("cast($%d AS %s[])", param, typ.Name)
		}
		inserts[i] = "INSERT INTO " + p.into.table + " (" + p.into.names + ") SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")" + p.into.conflict
		if i < last {
			inserts[i] = fmt.Sprintf("w%d AS (%s)", i, inserts[i])
		}
	}
	if last == 0 {
		return inserts[0]
	}
	return "WITH " + strings.Join(inserts[:last], ", ") + " " + inserts[last]
}

// The parts of PostgreSQL's binary form of arrays.
const (
	oneDimension = 1
	firstElement = 1
	nullLength   = 0xffffffff
)

// appendArray appends the values of a column, in PostgreSQL's binary form of an
// array. rows holds rows of so many columns one after the other.
func appendArray(b []byte, typ engine.ColumnType, rows []any, col, columns int) ([]byte, error) {
	size := 20
	for i := col; i < len(rows); i += columns {
		size += 12
		switch v := rows[i].(type) {
		case string:
			size += len(v)
		case []byte:
			size += len(v)
		}
	}
	b = slices.Grow(b, size)
	b = binary.BigEndian.AppendUint32(b, oneDimension)
	b = binary.BigEndian.AppendUint32(b, 1) // there may be nulls
	b = binary.BigEndian.AppendUint32(b, typ.ID)
	b = binary.BigEndian.AppendUint32(b, uint32(len(rows)/columns)) //nolint:gosec // small
	b = binary.BigEndian.AppendUint32(b, firstElement)
	for i := col; i < len(rows); i += columns {
		v := rows[i]
		switch v.(type) {
		case nil, string, int64, bool, []byte:
		default:
			var err error
			if v, err = driver.DefaultParameterConverter.ConvertValue(v); err != nil {
				return nil, err
			}
		}
		switch v := v.(type) {
		case nil:
			b = binary.BigEndian.AppendUint32(b, nullLength)
		case string:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...) //nolint:gosec // below 4 GB
		case []byte:
			b = append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...) //nolint:gosec // below 4 GB
		case int64:
			b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(v)) //nolint:gosec // its bits
		case bool:
			b = append(binary.BigEndian.AppendUint32(b, 1), 0)
			if v {
				b[len(b)-1] = 1
			}
		default:
			return nil, fmt.Errorf("a value of type %T", v)
		}
	}
	return b, nil
}
