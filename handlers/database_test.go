package handlers_test

import (
	"database/sql"
	"strings"
	"testing"
)

// exec makes changes that the program never makes.
func (s *server) exec(t *testing.T, query string, args ...any) {
	t.Helper()
	db := s.open(t)
	defer func() { _ = db.Close() }()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// texts reads one column of text that the API does not return.
func (s *server) texts(t *testing.T, query string, args ...any) []string {
	t.Helper()
	db := s.open(t)
	defer func() { _ = db.Close() }()
	rows, err := db.QueryContext(t.Context(), query, args...)
	must(t, err)
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var text string
		must(t, rows.Scan(&text))
		all = append(all, text)
	}
	must(t, rows.Err())
	return all
}

// open opens a second connection to the database.
func (s *server) open(t *testing.T) *sql.DB {
	t.Helper()
	driver := "sqlite"
	if strings.HasPrefix(s.database, "postgres") {
		driver = "postgres"
	}
	db, err := sql.Open(driver, s.database)
	must(t, err)
	return db
}
