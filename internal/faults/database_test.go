package faults_test

import (
	"context"
	"database/sql"
	"time"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

// openDatabase opens the installation's database beside the program. The caller
// closes it.
func (in *installation) openDatabase() (*sql.DB, error) {
	if in.engine == storetest.PostgreSQL {
		return sql.Open("postgres", in.database)
	}
	return sql.Open("sqlite", "file:"+in.database+"?_pragma=busy_timeout(10000)")
}

// hurry makes all mail and webhook deliveries due now, including those that wait for
// a retry or for the lease of a killed node: a test cannot move another process's
// clock.
func (in *installation) hurry(ctx context.Context) {
	in.t.Helper()
	db, err := in.openDatabase()
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // the database is discarded
	for _, table := range []string{"recipients", "webhook_deliveries"} {
		q := `UPDATE ` + table + ` SET next_attempt_at = $1 WHERE next_attempt_at > $1`
		if _, err := db.ExecContext(ctx, q, time.Now().UnixMicro()); err != nil {
			in.t.Fatal(err)
		}
	}
}

// count returns the number that a query selects.
func (in *installation) count(query string) (n int) {
	in.t.Helper()
	db, err := in.openDatabase()
	if err == nil {
		defer func() { _ = db.Close() }() // nothing was written
		err = db.QueryRowContext(in.t.Context(), query).Scan(&n)
	}
	if err != nil {
		in.t.Fatal(err)
	}
	return n
}

// settle waits until all accepted mail is delivered to all of its recipients, for as
// long as deliveries make progress.
func (in *installation) settle() {
	in.t.Helper()
	const waiting = `SELECT count(*) FROM recipients WHERE next_attempt_at IS NOT NULL`
	for left := in.count(waiting); left > 0; {
		was := left
		waittest.Until(in.t, "more of the accepted mail is delivered", func() bool {
			left = in.count(waiting)
			return left < was
		})
	}
}
