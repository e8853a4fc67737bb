//go:build unix

package testpg

import (
	"context"
	"database/sql"
	"errors"
	"testing"
)

// preparation fills a database with one table of one row.
func preparation(filled *int) Preparation {
	return Preparation{Version: "1", Fill: func(ctx context.Context, address string) error {
		*filled++
		db, err := sql.Open("postgres", address)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		_, err = db.ExecContext(ctx, `CREATE TABLE settings (id bigserial PRIMARY KEY, name text);
			CREATE TABLE inboxes (id bigserial PRIMARY KEY); INSERT INTO settings (name) VALUES ('first')`)
		return err
	}}
}

// prepared claims a prepared database of the server.
func prepared(t *testing.T, server string, p Preparation) (*claim, *sql.DB) {
	t.Helper()
	c, err := claimDatabase(t.Context(), server, preparedDatabases)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.prepare(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return c, open(t, c.url)
}

func TestPreparedDatabaseIsRestored(t *testing.T) {
	t.Parallel()
	server, filled := startServer(t, Options{}).URL(DefaultDatabase), 0
	p := preparation(&filled)
	steps := []struct {
		name, change string
		version      string
		killed       bool // the test does not release its database
		wantFilled   int
	}{
		{name: "filled at first", change: `INSERT INTO inboxes DEFAULT VALUES`, wantFilled: 1},
		{name: "rows added", change: `INSERT INTO inboxes DEFAULT VALUES; INSERT INTO settings (name) VALUES ('second')`, wantFilled: 1},
		{name: "rows changed and removed", change: `UPDATE settings SET name = 'other'; DELETE FROM settings`, wantFilled: 1},
		{name: "a table added", change: `CREATE TABLE other (id text)`, wantFilled: 1},
		{name: "filled after that; a column added", change: `ALTER TABLE inboxes ADD COLUMN name text`, wantFilled: 2},
		{name: "filled after that; an index removed", change: `ALTER TABLE inboxes DROP CONSTRAINT inboxes_pkey`, wantFilled: 3},
		{name: "filled after that; a schema added", change: `CREATE SCHEMA other`, wantFilled: 4},
		{name: "filled after that; the test is killed", change: `INSERT INTO inboxes DEFAULT VALUES`, killed: true, wantFilled: 5},
		{name: "filled after a killed test", wantFilled: 6},
		{name: "another version", version: "2", wantFilled: 7},
		{name: "the same version again", version: "2", wantFilled: 7},
	}
	for _, step := range steps {
		if step.version != "" {
			p.Version = step.version
		}
		c, db := prepared(t, server, p)
		if filled != step.wantFilled {
			t.Errorf("%s: the database has been filled %d times, want %d", step.name, filled, step.wantFilled)
		}
		wantRow(t, db, `SELECT string_agg(id || name, ',') FROM settings`, "1first")
		wantRow(t, db, `SELECT count(*) FROM inboxes`, "0")
		wantRow(t, db, `SELECT nextval('settings_id_seq') || ' ' || nextval('inboxes_id_seq')`, "2 1")
		wantRow(t, db, `SELECT count(*) FROM pg_tables WHERE schemaname = 'public'`, "2")
		exec1(t, db, step.change+`;`)
		if step.killed {
			if err := c.close(); err != nil {
				t.Fatal(err)
			}
		} else if err := errors.Join(c.restore(t.Context()), c.close()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		waitForLock(t, server, preparedDatabases, 1) // which ends a moment after its session
	}
}
