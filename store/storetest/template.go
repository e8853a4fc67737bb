package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/postroom/postroom/store"
)

// sqliteTemplate is the file that migrating an empty SQLite database makes:
// done once for a test binary, and copied for each test.
var sqliteTemplate = sync.OnceValues(func() (_ []byte, err error) {
	dir, err := os.MkdirTemp("", "storetest-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "template.db")
	cfg := store.Config{Database: path, CursorKey: make([]byte, 32), SealKey: make([]byte, 32)}
	if _, err := store.Migrate(context.Background(), cfg); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

func copySQLiteTemplate(t testing.TB, path string) {
	t.Helper()
	template, err := sqliteTemplate()
	if err == nil {
		err = os.WriteFile(path, template, 0o600)
	}
	if err != nil {
		t.Fatalf("make the SQLite database: %v", err)
	}
}

// fillPostgres migrates the database. There is no template: CREATE DATABASE
// would cost more than the migrations do.
func fillPostgres(t testing.TB, cfg store.Config) {
	t.Helper()
	if _, err := store.Migrate(t.Context(), cfg); err != nil {
		t.Fatal(fmt.Errorf("migrate PostgreSQL: %w", err))
	}
}
