package batch

import (
	"testing"

	"github.com/postroom/postroom/store/internal/engine"
)

func TestValuesNumbersItsPlaceholders(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		database string
		rows     int
		types    []string
		want     string
	}{
		{"postgres://x", 2, []string{"", "bigint"}, "($1, cast($2 AS bigint)), ($3, cast($4 AS bigint))"},
		{"postgres://x", 3, []string{""}, "($1), ($2), ($3)"},
		{"file", 1, []string{"", ""}, "(?, ?)"},
	} {
		if got := Values(engine.New(tt.database, 0), tt.rows, tt.types); got != tt.want {
			t.Errorf("%d rows of %q: %s, want %s", tt.rows, tt.types, got, tt.want)
		}
	}
}

func TestInsertTextWritesAllTablesAtOnce(t *testing.T) {
	t.Parallel()
	number, text := engine.ColumnType{Name: "bigint", ID: 20}, engine.ColumnType{Name: "text", ID: 25}
	a := &Insert{Columns: 2, table: "a", names: "n, s", types: []engine.ColumnType{number, text}}
	b := &Insert{Columns: 1, table: "b", names: "n", conflict: " ON CONFLICT DO NOTHING", types: []engine.ColumnType{number}, number: 1}
	for _, tt := range []struct {
		rows []pendingRows
		want string
	}{
		{[]pendingRows{{into: b}}, "INSERT INTO b (n) SELECT * FROM unnest(cast($1 AS bigint[])) ON CONFLICT DO NOTHING"},
		{[]pendingRows{{into: a}, {into: b}}, "WITH w0 AS (INSERT INTO a (n, s) SELECT * FROM unnest(cast($1 AS bigint[]), cast($2 AS text[]))) " +
			"INSERT INTO b (n) SELECT * FROM unnest(cast($3 AS bigint[])) ON CONFLICT DO NOTHING"},
	} {
		if got := insertText(tt.rows); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestArraysHoldValuesAndNulls(t *testing.T) {
	t.Parallel()
	rows := []any{int64(-2), "a", nil, "", int64(1), nil}
	for _, tt := range []struct {
		col  int
		typ  uint32
		want string
	}{
		{0, 20, "\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x14\x00\x00\x00\x03\x00\x00\x00\x01" +
			"\x00\x00\x00\x08\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff\xff\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01"},
		{1, 25, "\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x19\x00\x00\x00\x03\x00\x00\x00\x01" +
			"\x00\x00\x00\x01a\x00\x00\x00\x00\xff\xff\xff\xff"},
	} {
		got, err := appendArray(nil, engine.ColumnType{ID: tt.typ}, rows, tt.col, 2)
		if err != nil || string(got) != tt.want {
			t.Errorf("column %d: %q, %v, want %q", tt.col, got, err, tt.want)
		}
	}
	if _, err := appendArray(nil, engine.ColumnType{}, []any{1.5}, 0, 1); err == nil {
		t.Error("a float is accepted")
	}
}
