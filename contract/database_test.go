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

// openDatabase opens a second connection to the database of the installation
// until the test ends.
func (in *install) openDatabase(t *testing.T) *sql.DB {
	t.Helper()
	driver, address := "sqlite", "file:"+in.database+"?_pragma=busy_timeout(10000)&_txlock=immediate"
	if in.engine == storetest.PostgreSQL {
		driver, address = "postgres", in.database
	}
	db, err := sql.Open(driver, address)
	must(t, err)
	t.Cleanup(func() { _ = db.Close() }) // the database is temporary
	return db
}

// openStore opens a second store on the database of the installation, with its
// own clock, until the test ends.
func (in *install) openStore(t *testing.T, now func() time.Time) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{Database: in.database, CursorKey: make([]byte, 32), SealKey: make([]byte, 32), Now: now, TrustNow: true})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() }) // the database is temporary
	return s
}

// retain deletes what retention will have deleted after that time.
func (in *install) retain(ctx context.Context, t *testing.T, ahead time.Duration) {
	t.Helper()
	later := func() time.Time { return time.Now().Add(ahead) }
	r := maintenance.NewRetention(maintenance.RetentionConfig{Store: in.openStore(t, later), Log: slog.New(slog.DiscardHandler)})
	if gone, err := r.RunOnce(ctx); err != nil || gone.Nothing() {
		t.Errorf("retention %v ahead deleted %+v: %v", ahead, gone, err)
	}
}

// holdWrites blocks calls with an idempotency key, because all of them store
// their response, until release is called.
func (in *install) holdWrites(ctx context.Context, t *testing.T) (release func()) {
	t.Helper()
	tx, err := in.openDatabase(t).BeginTx(ctx, nil) // on SQLite this is enough
	must(t, err)
	if in.engine == storetest.PostgreSQL {
		if _, err := tx.ExecContext(ctx, `LOCK TABLE idempotency IN SHARE MODE`); err != nil {
			t.Fatal(err)
		}
	}
	return func() { _ = tx.Rollback() } // nothing was written
}

// deleteContent deletes the content of a message, as retention does.
func (in *install) deleteContent(ctx context.Context, t *testing.T, messageID string) {
	t.Helper()
	in.deleteContentOf(ctx, t, "messages", "contents", "message_seq", messageID)
}

// deleteDraftContent deletes the content of a draft, as retention does.
func (in *install) deleteDraftContent(ctx context.Context, t *testing.T, draftID string) {
	t.Helper()
	in.deleteContentOf(ctx, t, "drafts", "draft_contents", "draft_seq", draftID)
}

func (in *install) deleteContentOf(ctx context.Context, t *testing.T, records, contents, key, id string) {
	t.Helper()
	tx, err := in.openDatabase(t).BeginTx(ctx, nil)
	must(t, err)
	defer func() { _ = tx.Rollback() }() // no effect after the commit
	if _, err = tx.ExecContext(ctx, `DELETE FROM `+contents+` WHERE `+key+` = (SELECT seq FROM `+records+` WHERE id = $1)`, id); err != nil {
		t.Fatal(err)
	}
	if _, err = tx.ExecContext(ctx, `UPDATE `+records+` SET expired_at = $1 WHERE id = $2`, time.Now().UnixMicro(), id); err != nil {
		t.Fatal(err)
	}
	must(t, tx.Commit())
}
