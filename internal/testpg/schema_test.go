//go:build unix

package testpg

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSchemaIsPrivateAndEmpty(t *testing.T) {
	t.Parallel()

	// More rounds than databases, so that some are reused.
	for range 12 {
		t.Run("a test", func(t *testing.T) {
			t.Parallel()
			db := open(t, Schema(t))
			wantRow(t, db, `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace`, "0")
			wantRow(t, db, `SELECT count(*) FROM pg_namespace WHERE nspname = 'other'`, "0")
			wantRow(t, db, `SELECT datconnlimit FROM pg_database WHERE datname = current_database()`, "60")
			exec1(t, db, `CREATE TABLE inboxes (id text PRIMARY KEY)`)
			exec1(t, db, `CREATE SCHEMA other CREATE TABLE messages (id text)`)
		})
	}
}

func TestClaimOfATestThatWasKilled(t *testing.T) {
	t.Parallel()
	server := startServer(t, Options{}).URL(DefaultDatabase)

	killed, err := claimDatabase(t.Context(), server, emptyDatabases)
	if err != nil {
		t.Fatal(err)
	}
	exec1(t, open(t, killed.url), `CREATE TABLE left_over (id text)`)
	if err := killed.close(); err != nil { // its session ends without emptying the database
		t.Fatal(err)
	}
	waitForLock(t, server, emptyDatabases, 1)

	next, err := claimDatabase(t.Context(), server, emptyDatabases)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = next.release(context.Background()) })
	if diff := cmp.Diff(killed.name, next.name); diff != "" {
		t.Errorf("not the same database again:\n%s", diff)
	}
	wantRow(t, open(t, next.url), `SELECT count(*) FROM pg_tables WHERE tablename = 'left_over'`, "0")
}

// waitForLock waits until the server has noticed that the session with claim n is gone.
func waitForLock(t *testing.T, server string, k kind, n int) {
	t.Helper()
	session, err := open(t, server).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	const q = `SELECT pg_advisory_lock($1, $2), pg_advisory_unlock($1, $2)`
	if _, err := session.ExecContext(t.Context(), q, k.lock, n); err != nil {
		t.Fatal(err)
	}
}

func TestRequired(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name string
		env  map[string]string
		want bool
	}{
		{name: "not on a developer's machine"},
		{name: "in CI", env: map[string]string{"CI": "true"}, want: true},
		{name: "in a CI that sets its name", env: map[string]string{"CI": "woodpecker"}, want: true},
		{name: "not when CI is switched off", env: map[string]string{"CI": "false"}},
		{name: "when required", env: map[string]string{"POSTROOM_TEST_POSTGRES_REQUIRED": "1"}, want: true},
		{name: "when required, CI or not", env: map[string]string{"POSTROOM_TEST_POSTGRES_REQUIRED": "1", "CI": "0"}, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := required(func(name string) string { return tt.env[name] }); got != tt.want {
				t.Errorf("required = %v", got)
			}
		})
	}
}

// TestWithoutPostgreSQL runs the test below in a process that cannot find PostgreSQL.
func TestWithoutPostgreSQL(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, ci, want string
		fails          bool
	}{
		{name: "a developer's test is skipped with a reason", ci: "", want: "no PostgreSQL for this test (`make test` installs one)"},
		{name: "in CI the test fails", ci: "true", want: "this test needs PostgreSQL", fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNeedsSchema$", "-test.v")
			cmd.Env = append(os.Environ(), "TESTPG_HELPER=schema", "POSTROOM_TEST_POSTGRES=",
				"POSTROOM_TEST_POSTGRES_REQUIRED=", "POSTROOM_TEST_POSTGRES_BIN=/nonexistent", "CI="+tt.ci)
			out, err := cmd.CombinedOutput()
			if (err != nil) != tt.fails || !strings.Contains(string(out), tt.want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestNeedsSchema(t *testing.T) {
	t.Parallel()
	if os.Getenv("TESTPG_HELPER") != "schema" {
		t.Skip("run by TestWithoutPostgreSQL")
	}
	t.Logf("got %s", Schema(t))
}
