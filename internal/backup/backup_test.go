package backup_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/backup"
	"github.com/postroom/postroom/internal/s3blob"
	"github.com/postroom/postroom/internal/s3test"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

const secret = "a secret of at least 32 characters" //nolint:gosec // of the tests

// source returns an installation with a small and a large message, and the blob
// key of the latter.
func source(t *testing.T, cfg store.Config) (s *store.Store, key string) {
	t.Helper()
	s = storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s)
	storetest.Received(t, s, in)
	key, err := cfg.Blobs.Put(t.Context(), strings.NewReader("a large mail"), 12)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Received(t, s, in, func(m *store.NewMessage) { m.Content.Raw, m.Content.BlobKey = nil, &key })
	return s, key
}

func write(t *testing.T, s *store.Store, blobs store.Blobs, dir string) (backup.Manifest, error) {
	t.Helper()
	return backup.Write(t.Context(), backup.Config{
		Store: s, Blobs: blobs, Dir: dir, Secret: secret, Fingerprint: "0123", Version: "v1", Now: time.Now,
	})
}

// A restore ends all dashboard sessions, including one with a pending note.
func TestRestoreEndsSessions(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, _ := source(t, cfg)
	session, link := store.HashKey("session"), store.HashKey("link")
	_, err := s.CreateUser(t.Context(), storetest.Account(t, s).Seq, "ann", store.RoleAdmin, store.UserLink{Hash: link, ExpiresAt: time.Now().Add(time.Hour)})
	if err == nil {
		_, err = s.UseLink(t.Context(), link, "hash of a password", session)
	}
	if err == nil {
		err = s.LeaveNote(t.Context(), session, "key_1", "sk_live_1")
	}
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "backup")
	if _, err := write(t, s, cfg.Blobs, dir); err != nil {
		t.Fatal(err)
	}
	next := cfg
	next.Database = filepath.Join(t.TempDir(), "postroom.db")
	if err := open(t, dir).Restore(t.Context(), dir, next, folder(t)); err != nil {
		t.Fatal(err)
	}
	restored := storetest.OpenConfig(t, next)
	if _, err := restored.SessionUser(t.Context(), session); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the session after the restore: %v, want ErrNotFound", err)
	}
	if u, err := restored.UserByName(t.Context(), "ann"); err != nil || u.Password == nil {
		t.Errorf("the user after the restore: %+v, %v; want one with a password", u, err)
	}
}

func folder(t *testing.T) store.Blobs {
	t.Helper()
	b, err := store.OpenBlobFolder(filepath.Join(t.TempDir(), "blobs"), time.Now)
	return closed(t, b, err)
}

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

func closed(t *testing.T, b store.Blobs, err error) store.Blobs {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func open(t *testing.T, dir string) *backup.Backup {
	t.Helper()
	b, err := backup.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() }) // it was only read
	return b
}

// An incomplete or modified backup is not restored.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, key := source(t, cfg)
	tests := []struct {
		name   string
		damage func(dir string) error
		says   string
	}{
		{"a blob is gone", func(dir string) error { return os.Remove(filepath.Join(dir, "blobs", key)) }, "not whole"},
		{"a blob is another", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "blobs", key), []byte("another mail"), 0o600)
		}, "damaged"},
		{"the database is cut off", func(dir string) error { return os.Truncate(filepath.Join(dir, "database"), 4096) }, "damaged"},
		{"the list of checksums is cut off", func(dir string) error {
			path := filepath.Join(dir, "SHA256SUMS")
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			_, rest, _ := strings.Cut(string(text), "\n")
			return os.WriteFile(path, []byte(rest), 0o600)
		}, "not whole"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "backup")
			if _, err := write(t, s, cfg.Blobs, dir); err != nil {
				t.Fatal(err)
			}
			b := open(t, dir)
			if err := b.Check(t.Context()); err != nil {
				t.Fatalf("before: %v", err)
			}
			if err := tt.damage(dir); err != nil {
				t.Fatal(err)
			}
			if err := b.Check(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("check: %v, want %q", err, tt.says)
			}
		})
	}
}

// Blobs missing from the storage do not prevent a backup of the rest.
func TestLostBlobIsCounted(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, key := source(t, cfg)
	if err := cfg.Blobs.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "backup")
	if m, err := write(t, s, cfg.Blobs, dir); err != nil || m.MissingBlobs != 1 {
		t.Errorf("%+v, %v", m, err)
	}
}

// A failed backup leaves no files. An existing directory is not changed.
func TestFailedBackupLeavesNothing(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, _ := source(t, cfg)
	parent := t.TempDir()
	broken := folder(t)
	if err := broken.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := write(t, s, broken, filepath.Join(parent, "backup")); err == nil {
		t.Error("a backup without the blobs")
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := os.Mkdir(filepath.Join(parent, "backup"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := write(t, s, cfg.Blobs, filepath.Join(parent, "backup")); err == nil || !strings.Contains(err.Error(), "not overwritten") {
		t.Errorf("over a folder: %v", err)
	}
	if _, err := backup.Open(filepath.Join(parent, "backup")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder is opened as a backup: %v", err)
	}
}
