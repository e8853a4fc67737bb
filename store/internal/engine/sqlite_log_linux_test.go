package engine

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// After each commit, the files hold all that was committed, and nothing else: copies
// of them, as a crash would leave them, open as a whole database.
func TestCommittedTransactionsAreInTheLog(t *testing.T) {
	t.Parallel()
	if logVFS() == "" {
		t.Fatal("SQLite did not accept the layer")
	}
	dir := t.TempDir()
	e := &sqliteEngine{path: filepath.Join(dir, "a.db")}
	write, err := e.connect(t.Context(), []string{"journal_mode(WAL)", "synchronous(FULL)", "cache_size(10)", "wal_autocheckpoint(300)"}, "&_txlock=immediate&vfs="+logVFSName)
	if err != nil {
		t.Fatal(err)
	}
	write.SetMaxOpenConns(1)
	read, err := e.connect(t.Context(), []string{"query_only(1)"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write.ExecContext(t.Context(), `CREATE TABLE rows (n INTEGER PRIMARY KEY, text TEXT)`); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	want := 0
	for round := range 24 {
		rows, keep := 1+random.IntN(100), round%4 != 3
		tx, err := write.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for range rows { // more pages than the cache holds, so that they are written and read again
			insert(t, tx, random.IntN(3000))
		}
		if got := count(t, tx); got != want+rows {
			t.Fatalf("the transaction sees %d rows, want %d", got, want+rows)
		}
		if !keep {
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			rows = 0
		} else if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		want += rows
		if got := count(t, read); got != want {
			t.Fatalf("another connection sees %d rows, want %d", got, want)
		}
		if round%8 == 6 {
			checkCopy(t, e.path, filepath.Join(t.TempDir(), "copy.db"), want)
		}
	}
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
}

func insert(t *testing.T, tx *sql.Tx, size int) {
	t.Helper()
	if _, err := tx.ExecContext(t.Context(), `INSERT INTO rows (text) VALUES (hex(zeroblob(?)))`, size); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), `UPDATE rows SET text = text || 'a' WHERE n = 1 + abs(random()) % 500`); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM rows`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// checkCopy opens copies of the database and its log with SQLite's own layer.
func checkCopy(t *testing.T, from, to string, want int) {
	t.Helper()
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(from + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to+suffix, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db, err := sql.Open("sqlite", to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var state string
	if err := db.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&state); err != nil || state != "ok" {
		t.Fatalf("the copy is %q, %v", state, err)
	}
	if got := count(t, db); got != want {
		t.Fatalf("the copy has %d rows, want %d", got, want)
	}
}
