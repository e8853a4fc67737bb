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
	driver, source := "sqlite", s.database
	if strings.HasPrefix(source, "postgres") {
		driver = "postgres"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, q := range []string{`UPDATE messages SET expired_at = created_at WHERE seq = $1`, `DELETE FROM contents WHERE message_seq = $1`} {
		if _, err := db.ExecContext(t.Context(), q, m.Seq); err != nil {
			t.Fatal(err)
		}
	}
}
