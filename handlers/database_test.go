package handlers_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
)

// expire does to a message what retention does once it is built: its content
// goes, the rest stays.
func (s *server) expire(t *testing.T, m store.Message) {
	t.Helper()
	s.exec(t, `UPDATE messages SET expired_at = created_at WHERE seq = $1`, m.Seq)
	s.exec(t, `DELETE FROM contents WHERE message_seq = $1`, m.Seq)
}

// exec changes what no part of the program changes yet.
func (s *server) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	driver := "sqlite"
	if strings.HasPrefix(s.database, "postgres") {
		driver = "postgres"
	}
	db, err := sql.Open(driver, s.database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}
