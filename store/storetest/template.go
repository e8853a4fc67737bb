package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/migrations"
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

// schemaVersion is a checksum of all migrations.
var schemaVersion = sync.OnceValue(func() string {
	sum := sha256.New()
	files, err := migrations.PostgreSQL()
	if err != nil {
		panic(err) // the files are part of the program
	}
	err = fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		fmt.Fprintf(sum, "%s %d %s", path, len(text), text)
		return err
	})
	if err != nil {
		panic(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
})

// newestPostgres returns the address of a PostgreSQL database with the newest
// schema.
func newestPostgres(t testing.TB) string {
	t.Helper()
	return testpg.Prepared(t, testpg.Preparation{Version: schemaVersion(), Fill: func(ctx context.Context, address string) error {
		cfg := store.Config{Database: address, CursorKey: make([]byte, 32), SealKey: make([]byte, 32)}
		_, err := store.Migrate(ctx, cfg)
		return err
	}})
}
