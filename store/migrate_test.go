package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// openRaw opens the database of cfg beside the store.
func openRaw(t testing.TB, cfg store.Config) *sqlx.DB {
	t.Helper()
	driver := "sqlite"
	if strings.HasPrefix(cfg.Database, "postgres") {
		driver = "postgres"
	}
	db, err := sqlx.Open(driver, cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// eachEngineEmpty runs test on each engine with a database that has no schema.
func eachEngineEmpty(t *testing.T, test func(t *testing.T, cfg store.Config)) {
	t.Helper()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			test(t, storetest.EmptyConfig(t, e))
		})
	}
}

func TestMigrateRunsEveryStepOnce(t *testing.T) {
	t.Parallel()
	eachEngineEmpty(t, func(t *testing.T, cfg store.Config) {
		if _, err := store.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "postroom migrate") {
			t.Fatalf("open before migrate: got %v, want an error that says what to run", err)
		}
		for _, want := range []bool{true, false} {
			steps, err := store.Migrate(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if (steps > 0) != want {
				t.Errorf("migrate took %d steps, want some: %v", steps, want)
			}
		}
		storetest.OpenConfig(t, cfg)
	})
}

func TestMigrateStartedByManyNodesAtOnce(t *testing.T) {
	t.Parallel()
	eachEngineEmpty(t, func(t *testing.T, cfg store.Config) {
		var nodes sync.WaitGroup
		errs := make([]error, 4)
		steps := make([]int, 4)
		for i := range errs {
			nodes.Go(func() { steps[i], errs[i] = store.Migrate(t.Context(), cfg) })
		}
		nodes.Wait()
		for i, err := range errs {
			if err != nil {
				t.Errorf("node %d: %v", i, err)
			}
		}
		slices.Sort(steps)
		if steps[2] != 0 || steps[3] == 0 {
			t.Errorf("the nodes took %v steps, want all of them by one", steps)
		}
	})
}

// A step that fails, or whose process ends, changes nothing. It runs again, once. A program
// without the step refuses the schema, and changes nothing either.
func TestStepOfALaterVersion(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		account := storetest.Inbox(t, storetest.OpenConfig(t, cfg)).AccountID
		broken := errors.New("the step is broken")
		step := func(result error) (int, error) {
			return store.MigrateWith(t.Context(), cfg, func(ctx context.Context, tx *sql.Tx) error {
				for _, q := range []string{`ALTER TABLE inboxes ADD COLUMN one BIGINT NOT NULL DEFAULT 1`, `UPDATE inboxes SET one = one + 1`} {
					if _, err := tx.ExecContext(ctx, q); err != nil {
						return err
					}
				}
				return result
			})
		}
		if _, err := step(broken); !errors.Is(err, broken) {
			t.Fatalf("a broken step: got %v", err)
		}
		storetest.OpenConfig(t, cfg) // the schema is still that of this version
		for i, want := range []int{1, 0} {
			if n, err := step(nil); n != want || err != nil {
				t.Errorf("migration %d took %d steps, want %d: %v", i+1, n, want, err)
			}
		}
		const newer = "newer than"
		if _, err := store.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), newer) {
			t.Errorf("open: got %v, want an error with %q", err, newer)
		}
		if _, err := store.Migrate(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), newer) {
			t.Errorf("migrate: got %v, want an error with %q", err, newer)
		}
		var one int
		if err := openRaw(t, cfg).Get(&one, `SELECT one FROM inboxes WHERE account_id = $1`, account); one != 2 || err != nil {
			t.Errorf("the step ran to %d, want 2: %v", one, err)
		}
	})
}

// column is what must be alike on both engines.
type column struct {
	Table, Name string
	Null        bool
}

// The full-text index is each database's own, and counts of calls are tables
// only where many nodes share them.
func TestMigrationsMakeTheSameTablesOnBothEngines(t *testing.T) {
	t.Parallel()
	const (
		sqlite = `SELECT m.name AS "table", c.name, c."notnull" = 0 AND c.pk = 0 AS "null"
			FROM sqlite_master m JOIN pragma_table_info(m.name) c
			WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'goose%'
				AND m.name NOT LIKE 'search_index%' ORDER BY 1, 2`
		postgres = `SELECT table_name AS "table", column_name AS name, is_nullable = 'YES' AS "null"
			FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE 'goose%'
				AND table_name NOT IN ('search_index', 'rate_limits') ORDER BY 1, 2`
	)
	columns := func(e storetest.Engine, q string) []column {
		var cs []column
		if err := openRaw(t, storetest.Config(t, e)).Select(&cs, q); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(cs, func(a, b column) int { return strings.Compare(a.Table+"."+a.Name, b.Table+"."+b.Name) })
		return cs
	}
	a, b := columns(storetest.SQLite, sqlite), columns(storetest.PostgreSQL, postgres)
	if len(a) < 80 {
		t.Fatalf("found only %d columns: the question is wrong", len(a))
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("SQLite (-) and PostgreSQL (+) differ:\n%s", diff)
	}
}

func TestSQLiteIsOpenedAsDurableAsItMustBe(t *testing.T) {
	t.Parallel()
	s := storetest.OpenSQLite(t)
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		got, err := store.Pragma(t.Context(), s, pragma)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", pragma, got, want)
		}
	}
}

func TestSQLiteFilesAreForTheirUserAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := store.Config{Database: filepath.Join(dir, "postroom.db"), CursorKey: make([]byte, 32), SealKey: make([]byte, 32)}
	if _, err := store.Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	for _, name := range []string{"postroom.db", "postroom.db-migrate", "postroom.db-wal", "postroom.db-shm"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o: others on the machine read the mail in it", name, mode)
		}
	}
}

func TestPostgreSQLCommitsSynchronously(t *testing.T) {
	t.Parallel()
	db := openRaw(t, storetest.Config(t, storetest.PostgreSQL))
	var mode string
	if err := db.Get(&mode, `SHOW synchronous_commit`); err != nil {
		t.Fatal(err)
	}
	if mode != "on" {
		t.Errorf("synchronous_commit is %s", mode)
	}
}

// count counts the rows of a table beside the store.
func count(t testing.TB, cfg store.Config, table string) int {
	t.Helper()
	var n int
	if err := openRaw(t, cfg).Get(&n, fmt.Sprintf(`SELECT count(*) FROM %s`, table)); err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	return n
}

// A step that waits for a table lets the statements pass that came after it, and is
// repeated until the table is free.
func TestMigrationDoesNotHoldUpOtherNodes(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	db := openRaw(t, cfg)
	node := db.MustBegin()
	defer func() { _ = node.Rollback() }()
	node.MustExec(`LOCK TABLE webhook_endpoints IN ROW SHARE MODE`)

	migrated := make(chan error, 1)
	go func() {
		_, err := store.MigrateWith(t.Context(), cfg, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `ALTER TABLE webhook_endpoints ADD COLUMN one BIGINT`)
			return err
		})
		migrated <- err
	}()
	const waiting = `SELECT count(*) > 0 FROM pg_locks
		WHERE relation = 'webhook_endpoints'::regclass AND mode = 'AccessExclusiveLock' AND NOT granted`
	for waits := false; !waits; {
		if err := db.Get(&waits, waiting); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-migrated:
			t.Fatalf("migrate returned %v while a node had the table", err)
		default:
		}
	}
	reader := db.MustBegin()
	defer func() { _ = reader.Rollback() }()
	reader.MustExec(`SET LOCAL lock_timeout = '3s'`)
	var n int
	if err := reader.Get(&n, `SELECT count(*) FROM webhook_endpoints`); err != nil {
		t.Errorf("a read behind the waiting migration: %v", err)
	}
	if err := errors.Join(reader.Rollback(), node.Rollback()); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Errorf("migrate: %v", err)
	}
}
