//go:build clients

package backup_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// TestRestoreBetweenFolderAndBucket restores a backup from a blob directory to a bucket, and
// back.
func TestRestoreBetweenFolderAndBucket(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, key := source(t, cfg)
	for _, to := range []store.Blobs{bucket(t), folder(t)} {
		dir := filepath.Join(t.TempDir(), "new", "backup")
		m, err := write(t, s, cfg.Blobs, dir)
		if err != nil || m.Messages != 2 || m.Blobs != 1 || m.MissingBlobs != 0 || !m.HasSecret {
			t.Fatalf("%+v, %v", m, err)
		}
		b := open(t, dir)
		if got, err := b.Secret(); err != nil || got != secret {
			t.Errorf("the secret is %q, %v", got, err)
		}
		next := cfg
		next.Database, next.Blobs = filepath.Join(t.TempDir(), "postroom.db"), to
		if err := errors.Join(b.Check(t.Context()), b.Restore(t.Context(), dir, next, to)); err != nil {
			t.Fatal(err)
		}
		if err := b.Restore(t.Context(), dir, next, to); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Errorf("blobs are restored over others: %v", err)
		}
		if err := b.Restore(t.Context(), dir, next, folder(t)); err == nil || !strings.Contains(err.Error(), "already") {
			t.Errorf("a database is restored over another: %v", err)
		}
		r, err := to.Open(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		cfg, s = next, storetest.OpenConfig(t, next)
	}
}
