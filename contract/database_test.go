package contract_test

import (
	"context"
	"database/sql"
	"log/slog"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/maintenance"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// openDatabase opens the install's database beside the program, until the test
// ends.
func (in *install) openDatabase(t *testing.T) *sql.DB {
	t.Helper()
	driver, address := "sqlite", "file:"+in.database+"?_pragma=busy_timeout(10000)&_txlock=immediate"
	if in.engine == storetest.PostgreSQL {
		driver, address = "postgres", in.database
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // of a database that is thrown away
	return db
}

// openStore opens the store of the install beside the program, with a clock of
// its own, until the test ends.
func (in *install) openStore(t *testing.T, now func() time.Time) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Database: in.database, CursorKey: make([]byte, 32), SealKey: make([]byte, 32), Now: now, TrustNow: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // of a database that is thrown away
	return s
}

// retain deletes what retention will have deleted when that time has passed.
func (in *install) retain(ctx context.Context, t *testing.T, ahead time.Duration) {
	t.Helper()
	later := func() time.Time { return time.Now().Add(ahead) }
	r := maintenance.NewRetention(maintenance.RetentionConfig{Store: in.openStore(t, later), Log: slog.New(slog.DiscardHandler)})
	if gone, err := r.RunOnce(ctx); err != nil || gone.Nothing() {
		t.Errorf("retention %v ahead deleted %+v: %v", ahead, gone, err)
	}
}

// holdWrites keeps the program from ending a call with an idempotency key, all of
// which store their answer, until release is called.
func (in *install) holdWrites(ctx context.Context, t *testing.T) (release func()) {
	t.Helper()
	tx, err := in.openDatabase(t).BeginTx(ctx, nil) // on SQLite this alone does it
	if err != nil {
		t.Fatal(err)
	}
	if in.engine == storetest.PostgreSQL {
		if _, err := tx.ExecContext(ctx, `LOCK TABLE idempotency IN SHARE MODE`); err != nil {
			t.Fatal(err)
		}
	}
	return func() { _ = tx.Rollback() } // nothing was written
}

// deleteContent does to a message what retention does.
func (in *install) deleteContent(ctx context.Context, t *testing.T, messageID string) {
	t.Helper()
	in.deleteContentOf(ctx, t, "messages", "contents", "message_seq", messageID)
}

// deleteDraftContent does to a draft what retention does.
func (in *install) deleteDraftContent(ctx context.Context, t *testing.T, draftID string) {
	t.Helper()
	in.deleteContentOf(ctx, t, "drafts", "draft_contents", "draft_seq", draftID)
}

func (in *install) deleteContentOf(ctx context.Context, t *testing.T, records, contents, key, id string) {
	t.Helper()
	tx, err := in.openDatabase(t).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // committed by then
	if _, err = tx.ExecContext(ctx, `DELETE FROM `+contents+` WHERE `+key+` = (SELECT seq FROM `+records+` WHERE id = $1)`, id); err != nil {
		t.Fatal(err)
	}
	if _, err = tx.ExecContext(ctx, `UPDATE `+records+` SET expired_at = $1 WHERE id = $2`, time.Now().UnixMicro(), id); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}
