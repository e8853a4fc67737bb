package faults_test

import (
	"context"
	"database/sql"
	"time"

	"github.com/postroom/postroom/store/storetest"
)

// openDatabase opens the install's database beside the program. The caller
// closes it.
func (in *install) openDatabase() (*sql.DB, error) {
	if in.engine == storetest.PostgreSQL {
		return sql.Open("postgres", in.database)
	}
	return sql.Open("sqlite", "file:"+in.database+"?_pragma=busy_timeout(10000)")
}

// hurry makes all deliveries of mail and to webhooks due: it lets the time of
// retries, and of the leases of a node that was killed, pass, which no clock of
// ours can do for another process.
func (in *install) hurry(ctx context.Context) {
	in.t.Helper()
	db, err := in.openDatabase()
	if err != nil {
		in.t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // of a database that is thrown away
	for _, table := range []string{"recipients", "webhook_deliveries"} {
		q := `UPDATE ` + table + ` SET next_attempt_at = $1 WHERE next_attempt_at > $1`
		if _, err := db.ExecContext(ctx, q, time.Now().UnixMicro()); err != nil {
			in.t.Fatal(err)
		}
	}
}

// count asks the database for a number.
func (in *install) count(query string) (n int) {
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

// settle waits until all mail that was taken is delivered, to all of its
// recipients, for as long as it goes on.
func (in *install) settle() {
	in.t.Helper()
	const waiting = `SELECT count(*) FROM recipients WHERE next_attempt_at IS NOT NULL`
	for left := in.count(waiting); left > 0; {
		was := left
		eventually(in.t, "of the mail that was taken some more is delivered", func() bool {
			left = in.count(waiting)
			return left < was
		})
	}
}
