package store_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// waitingFor returns how many transactions wait for a lock on a table, or on one of
// its rows.
func waitingFor(t *testing.T, db *sqlx.DB, table string) (n int) {
	t.Helper()
	const q = `SELECT count(DISTINCT w.pid) FROM pg_locks w JOIN pg_locks h ON h.pid = w.pid AND h.relation = cast($1 AS regclass)
		WHERE NOT w.granted AND (w.relation = h.relation OR w.locktype IN ('transactionid', 'tuple'))`
	if err := db.Get(&n, q, table); err != nil {
		t.Fatal(err)
	}
	return n
}

// A send that PostgreSQL aborts again and again to resolve a deadlock is retried until
// it passes, and written once.
func TestVictimOfDeadlocksIsRetried(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	cfg.DefaultPlan = store.PlanFree // whose sends lock the account
	s := storetest.OpenConfig(t, cfg)
	db := openRaw(t, cfg)
	in := storetest.Inbox(t, s)
	const rings = 3
	sent := 0
	send := func() (formed int) {
		tx := db.MustBegin()
		defer func() { _ = tx.Rollback() }()
		tx.MustExec(`SELECT 1 FROM accounts WHERE seq = $1 FOR UPDATE`, in.AccountID)
		done := make(chan error, 1)
		go func() {
			_, err := s.Enqueue(context.Background(), storetest.NewSent(in, []string{"bob@out.example"}), nil)
			done <- err
		}()
		for range rings {
			waittest.Until(t, "the send waits for the account", func() bool { return waitingFor(t, db, "accounts") > 0 })
			tx.MustExec(`SAVEPOINT circle`)
			// The send waits for longer, and so is the one that is aborted.
			if _, err := tx.Exec(`SELECT 1 FROM inboxes WHERE seq = $1 FOR UPDATE`, in.Seq); err != nil {
				break // the send had looked for a deadlock before there was one
			}
			formed++
			tx.MustExec(`ROLLBACK TO SAVEPOINT circle`)
		}
		_ = tx.Rollback()
		err := <-done
		if err == nil {
			sent++
		}
		if err != nil && formed == rings {
			t.Errorf("after %d deadlocks: %v", formed, err)
		}
		return formed
	}
	for send() < rings {
	}
	var stored int
	if err := db.Get(&stored, `SELECT count(*) FROM messages`); err != nil || stored != sent {
		t.Errorf("%d messages are stored, want %d: %v", stored, sent, err)
	}
}

// A migration that waits in a circle with a transaction of a node releases its locks,
// and the transaction goes on.
func TestMigrationsCauseNoDeadlocks(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.PostgreSQL)
	db := openRaw(t, cfg)
	before := deadlocks(t, cfg)
	node := db.MustBegin()
	defer func() { _ = node.Rollback() }()
	node.MustExec(`SELECT count(*) FROM recipients`)
	migrated := make(chan error, 1)
	go func() {
		_, err := store.MigrateWith(t.Context(), cfg, func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, `ALTER TABLE accounts ADD COLUMN one BIGINT; ALTER TABLE recipients ADD COLUMN one BIGINT`)
			return err
		})
		migrated <- err
	}()
	waittest.Until(t, "the migration waits for the recipients", func() bool { return waitingFor(t, db, "recipients") > 0 })
	if _, err := node.Exec(`SELECT count(*) FROM accounts`); err != nil {
		t.Errorf("the node reads the accounts: %v", err)
	}
	if err := node.Commit(); err != nil {
		t.Errorf("the node commits: %v", err)
	}
	if err := <-migrated; err != nil {
		t.Errorf("the migration: %v", err)
	}
	if n := deadlocks(t, cfg) - before; n > 0 {
		t.Errorf("%d deadlocks", n)
	}
}
