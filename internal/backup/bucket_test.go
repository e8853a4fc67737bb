//go:build clients

package backup_test

import (
	"errors"
	"testing"

	"github.com/postroom/postroom/internal/backup"
	"github.com/postroom/postroom/internal/s3blob"
	"github.com/postroom/postroom/internal/s3test"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

func bucket(t *testing.T) store.Blobs {
	t.Helper()
	server := s3test.Start(t)
	cfg, err := s3blob.Parse(server.Address())
	if err != nil {
		t.Fatal(err)
	}
	cfg.Credentials = s3blob.Credentials{AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey}
	b, err := s3blob.Open(t.Context(), cfg)
	return closed(t, b, err)
}

// TestRestoreBetweenFolderAndBucket restores a backup from a blob directory to a bucket, and
// back.
func TestRestoreBetweenFolderAndBucket(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, key := source(t, cfg)
	for _, to := range []store.Blobs{bucket(t), folder(t)} {
		b, err := backup.Open(t.Context(), backUp(t, s, cfg.Blobs, ""))
		if err != nil {
			t.Fatal(err)
		}
		cfg = storetest.EmptyConfig(t, storetest.SQLite)
		cfg.Blobs = to
		if err := errors.Join(b.Restore(t.Context(), cfg, to), b.Close()); err != nil {
			t.Fatal(err)
		}
		r, err := to.Open(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		s = storetest.OpenConfig(t, cfg)
	}
}
