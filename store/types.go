package store

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postroom/postroom/internal/ids"
)

// NewID returns an id of 20 characters: prefix, 32 bits of seconds, so that ids sort by
// time, random bits, and a check character. With a prefix of 4 characters 43 bits are
// random. The long ids of former releases begin with 0, so they sort before these.
func NewID(prefix string, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint32(b[:4], uint32(now.Unix())) //nolint:gosec // until 2106
	_, _ = rand.Read(b[4:])                               // crypto/rand never fails
	id := (prefix + ids.Encoding.EncodeToString(b[:]))[:ids.Length-1]
	return id + string(ids.Check(id))
}

// NewLongID returns prefix and a body of 26 characters: 48 bits of milliseconds, so
// that ids sort by time, and 80 random bits, so that none can be guessed. Events are
// found by their time, and names of blobs are kept from collisions.
func NewLongID(prefix string, now time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(b[6:])
	return prefix + ids.Encoding.EncodeToString(b[:])
}

// firstID is what no long id of that prefix and time, or later, sorts before.
func firstID(prefix string, at time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(max(at.UnixMilli(), 0))<<16) //nolint:gosec // not negative
	return prefix + ids.Encoding.EncodeToString(b[:])
}

// firstShortID is what no id from NewID with that prefix and time, or later, sorts before.
func firstShortID(prefix string, at time.Time) string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(min(max(at.Unix(), 0), math.MaxUint32))) //nolint:gosec // in range
	return prefix + ids.Encoding.EncodeToString(b[:])
}

// idTime returns the time in an id with this prefix: that of a long id in
// milliseconds, and that of a new one in seconds.
func idTime(prefix, id string) (time.Time, bool) {
	body, ok := strings.CutPrefix(id, prefix)
	if !ok {
		return time.Time{}, false
	}
	if len(body) == ids.LongBody {
		b, err := ids.Encoding.DecodeString(body)
		if err != nil {
			return time.Time{}, false
		}
		return time.UnixMilli(int64(binary.BigEndian.Uint64(b) >> 16)), true //nolint:gosec // 48 bits
	}
	if len(id) != ids.Length || ids.Typo(id) != "" {
		return time.Time{}, false
	}
	b, err := ids.Encoding.DecodeString(body[:8])
	if err != nil {
		return time.Time{}, false
	}
	return time.Unix(int64(binary.BigEndian.Uint32(b)), 0), true
}

// JSON is a column that holds V as JSON text.
type JSON[T any] struct{ V T }

// Value implements driver.Valuer.
func (j JSON[T]) Value() (driver.Value, error) {
	b, err := json.Marshal(j.V)
	if err != nil {
		return nil, fmt.Errorf("write JSON column: %w", err)
	}
	return string(b), nil
}

// Scan implements sql.Scanner.
func (j *JSON[T]) Scan(src any) error {
	var b []byte
	switch v := src.(type) {
	case string:
		b = []byte(v)
	case []byte:
		b = v
	default:
		return fmt.Errorf("scan %T into a JSON column", src)
	}
	if err := json.Unmarshal(b, &j.V); err != nil {
		return fmt.Errorf("read JSON column: %w", err)
	}
	return nil
}

// Time is a point in time as stored in the database: UTC, in microseconds since
// 1970, truncated to the milliseconds that the API shows, so that comparisons
// agree with what clients see.
type Time struct{ time.Time }

// NewTime returns t in UTC, cut to the millisecond.
func NewTime(t time.Time) Time { return Time{t.UTC().Truncate(time.Millisecond)} }

// TimePtr is NewTime for a column that may be null.
func TimePtr(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	st := NewTime(*t)
	return &st
}

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) { return t.UnixMicro(), nil }

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	us, ok := src.(int64)
	if !ok {
		return fmt.Errorf("scan %T into Time", src)
	}
	t.Time = time.UnixMicro(us).UTC()
	return nil
}

// Page is the part of a list that is wanted.
type Page struct {
	// Limit is the most rows to return, at least 1.
	Limit int
	// Cursor is of the page before, or empty for the first page.
	Cursor string
}

// List is one page and the cursor of the next one, which is empty on the last.
type List[T any] struct {
	Rows   []T
	Cursor string
}

const (
	cursorMAC    = 16
	cursorLength = 43 // of the text; the decoder itself would overlook line breaks
)

// cursorSigner makes cursors that only we can make and that hold only for the
// list, the account and the filters they were made for.
type cursorSigner struct{ key []byte }

func newCursorSigner(key []byte) (cursorSigner, error) {
	if len(key) < 16 {
		return cursorSigner{}, errors.New("the cursor key is shorter than 16 bytes")
	}
	return cursorSigner{key}, nil
}

// position is where a page ended.
type position struct {
	At  int64 `db:"created_at"`
	Seq int64 `db:"seq"`
}

func (c cursorSigner) make(scope string, p position) string {
	var b [16 + cursorMAC]byte
	binary.BigEndian.PutUint64(b[:8], uint64(p.At))    //nolint:gosec // bits, not a number
	binary.BigEndian.PutUint64(b[8:16], uint64(p.Seq)) //nolint:gosec // bits, not a number
	copy(b[16:], c.mac(scope, b[:16]))
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// read returns the position in cursor, or ErrCursor.
func (c cursorSigner) read(scope, cursor string) (position, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(cursor) != cursorLength || !hmac.Equal(b[16:], c.mac(scope, b[:16])) {
		return position{}, ErrCursor
	}
	return position{
		At:  int64(binary.BigEndian.Uint64(b[:8])),   //nolint:gosec // bits, not a number
		Seq: int64(binary.BigEndian.Uint64(b[8:16])), //nolint:gosec // bits, not a number
	}, nil
}

func (c cursorSigner) mac(scope string, b []byte) []byte {
	m := hmac.New(sha256.New, c.key)
	_, _ = fmt.Fprintf(m, "%s\x00%s", scope, b) // a hash never fails
	return m.Sum(nil)[:cursorMAC]
}

// page cuts rows, which were asked for with limit+1, to the limit, and makes
// the cursor from the last row that stays.
func page[T any](s *Store, scope string, limit int, rows []T, at func(T) position) List[T] {
	if len(rows) <= limit {
		return List[T]{Rows: rows}
	}
	rows = rows[:limit]
	return List[T]{Rows: rows, Cursor: s.cursors.make(scope, at(rows[limit-1]))}
}

// before returns the position that a page, newest first, stays below.
func (s *Store) before(scope, cursor string) (position, error) {
	if cursor == "" {
		return position{At: maxPosition, Seq: maxPosition}, nil
	}
	return s.cursors.read(scope, cursor)
}

// beforeSeq is before for a list sorted by seq alone.
func (s *Store) beforeSeq(scope, cursor string) (int64, error) {
	p, err := s.before(scope, cursor)
	return p.Seq, err
}

// listBySeq returns a page of the rows that selects and w select, newest first: in the
// falling order of the numbers in column, which seq returns of a row.
func listBySeq[T any](ctx context.Context, s *Store, p Page, scope, what, selects string, w *where, column string, seq func(T) int64) (List[T], error) {
	return listFiltered(ctx, s, p, scope, what, selects, w, column, "", nil, seq)
}

// listFiltered is listBySeq for the rows that pass a filter that no index serves, nil for
// none. It reads a bounded number of rows, so a page may hold fewer than the limit, or none,
// and yet not be the last. columns are those of selects by their names.
func listFiltered[T any](
	ctx context.Context, s *Store, p Page, scope, what, selects string, w *where, column, columns string, filter func(*where), seq func(T) int64,
) (l List[T], err error) {
	before, err := s.beforeSeq(scope, p.Cursor)
	if err != nil {
		return List[T]{}, err
	}
	w.add(column+" < ?", before)
	at := func(row T) position { return position{Seq: seq(row)} }
	q := selects + w.sql() + ` ORDER BY ` + column + ` DESC`
	if filter == nil {
		rows, err := readAll[T](ctx, s, what, q+` LIMIT `+w.arg(p.Limit+1), w.args...)
		return page(s, scope, p.Limit, rows, at), err
	}
	passing := &where{args: slices.Clone(w.args)}
	filter(passing)
	rows, last, err := scan[T](ctx, s, what, columns, q, w.args, passing, p.Limit+1, max(p.Limit+1, s.limits.listScan))
	l = page(s, scope, p.Limit, rows, at)
	if last != nil {
		l.Cursor = s.cursors.make(scope, at(*last))
	}
	return l, err
}

// scan reads at most `most` of the rows that selects and args select, in their order, and
// returns the first limit of those that pass the filter, which knows them as m. When it
// has stopped before the end of the rows and has found fewer than limit, last is the last
// row that it read. Both databases go through the rows in their order and stop when they
// have enough.
func scan[T any](ctx context.Context, s *Store, what, columns, selects string, args []any, filter *where, limit, most int) (rows []T, last *T, err error) {
	q := `SELECT ` + columns + ` FROM (` + selects + ` LIMIT ` + strconv.Itoa(most) + `) m` + filter.sql() + ` LIMIT ` + filter.arg(limit)
	rows, err = readAll[T](ctx, s, what, q, filter.args...)
	if err != nil || len(rows) == limit {
		return rows, nil, err
	}
	q = `SELECT ` + columns + ` FROM (` + selects + ` LIMIT 1 OFFSET ` + strconv.Itoa(most-1) + `) m`
	end, err := readAll[T](ctx, s, what, q, args...)
	if err != nil || len(end) == 0 {
		return rows, nil, err
	}
	return rows, &end[0], nil
}

// where builds the WHERE clause of a list whose filters are optional.
type where struct {
	conds []string
	args  []any
}

// conditions returns a where with one condition.
func conditions(cond string, args ...any) *where {
	w := &where{}
	w.add(cond, args...)
	return w
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
		w.add("1 = 0")
		return
	}
	w.add(column + " IN (" + strings.Join(each(values, func(v string) string { return w.arg(v) }), ", ") + ")")
}

func (w *where) sql() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conds, " AND ")
}

// notIn adds the condition that column is none of values.
func notIn[T any](w *where, column string, values []T) {
	if len(values) == 0 {
		return
	}
	w.add(column + " NOT IN (" + strings.Join(each(values, func(v T) string { return w.arg(v) }), ", ") + ")")
}
