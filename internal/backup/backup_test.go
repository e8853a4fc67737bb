package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/backup"
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
	storetest.Received(t, s, in, func(m *store.NewMessage) { m.Content.Raw, m.Content.BlobKey, m.Size = nil, &key, 12 })
	return s, key
}

func write(t *testing.T, s *store.Store, blobs store.Blobs, dir, account string) (backup.Manifest, error) {
	t.Helper()
	return backup.Write(t.Context(), backup.Config{
		Store: s, Blobs: blobs, Dir: dir, Secret: secret, Fingerprint: "0123", Version: "v1", Now: time.Now,
	}, account)
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
	restored := restore(t, backUp(t, s, cfg.Blobs, ""), storetest.SQLite).store
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
	if _, err := write(t, s, broken, filepath.Join(parent, "backup"), ""); err == nil {
		t.Error("a backup without the blobs")
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := os.Mkdir(filepath.Join(parent, "backup"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := write(t, s, cfg.Blobs, filepath.Join(parent, "backup"), ""); err == nil || !strings.Contains(err.Error(), "not overwritten") {
		t.Errorf("over a folder: %v", err)
	}
	if _, err := backup.Open(t.Context(), filepath.Join(parent, "backup")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty folder is opened as a backup: %v", err)
	}
}

// TestBackupRoundTripsBetweenEngines backs up 300 mixed messages, restores them into the
// other engine, and back: the second and third backups are equal byte for byte, and the
// first differs from them only in what a restore holds.
func TestBackupRoundTripsBetweenEngines(t *testing.T) {
	t.Parallel()
	for _, from := range storetest.Engines(t) {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			other := storetest.PostgreSQL
			if from == storetest.PostgreSQL {
				other = storetest.SQLite
			}
			cfg := storetest.Config(t, from)
			s := storetest.OpenConfig(t, cfg)
			fillMixed(t, s, cfg.Blobs)
			first := backUp(t, s, cfg.Blobs, "")
			there := restore(t, first, other)
			second := backUp(t, there.store, there.blobs, "")
			back := restore(t, second, from)
			third := backUp(t, back.store, back.blobs, "")

			same(t, second, third, nil)
			same(t, first, second, []string{"tables/recipients.jsonl", "tables/webhook_deliveries.jsonl", "tables/emails.jsonl"})
			if h, err := there.store.Held(t.Context()); err != nil || h.Recipients == 0 {
				t.Errorf("held after the restore: %+v, %v", h, err)
			}
			in := storetest.Inbox(t, back.store)
			if m := storetest.Received(t, back.store, in); m.Seq == 0 {
				t.Error("no message can be received after the restore")
			}
		})
	}
}

// fillMixed stores about 300 messages of all kinds, and everything beside them.
func fillMixed(t *testing.T, s *store.Store, blobs store.Blobs) {
	t.Helper()
	account := storetest.Account(t, s)
	for i := range 4 {
		in := storetest.Inbox(t, s)
		for n := range 55 {
			storetest.Received(t, s, in, func(m *store.NewMessage) {
				m.Subject = fmt.Sprintf("Ünïcode %d \u2028 \"quoted\" \\ back", n)
				m.Content.Snippet = "<b>&amp; \t"
				m.Content.Raw = []byte("Subject: bytes\r\n\r\n\x00\xff\xfe" + strings.Repeat("x", n))
				if n%15 == 0 {
					large := bytes.Repeat([]byte{byte(n), 0, 255}, 100_000)
					key, err := blobs.Put(t.Context(), bytes.NewReader(large), int64(len(large)))
					if err != nil {
						t.Fatal(err)
					}
					m.Content.Raw, m.Content.BlobKey, m.Size = nil, &key, int64(len(large))
				}
			})
		}
		if _, err := s.CountEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			storetest.Sent(t, s, in, []string{fmt.Sprintf("ann%d@out.example", n), "bob@out.example"})
		}
		storetest.Email(t, s, account.Seq, []string{"ann@out.example"})
		if i == 0 {
			if _, err := s.CreateDraft(t.Context(), storetest.NewDraft(in), nil); err != nil {
				t.Fatal(err)
			}
		}
		storetest.Key(t, s, account.Seq, fmt.Sprintf("key%d", i))
	}
}

func backUp(t *testing.T, s *store.Store, blobs store.Blobs, account string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "backup")
	m, err := write(t, s, blobs, dir, account)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Missing) > 0 {
		t.Errorf("missing: %q", m.Missing)
	}
	return dir
}

type restored struct {
	store *store.Store
	blobs store.Blobs
}

func restore(t *testing.T, dir string, to storetest.Engine) restored {
	t.Helper()
	b, err := backup.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }() // it was only read
	if given, err := b.Secret(); err != nil || given != secret {
		t.Errorf("the secret is %q, %v", given, err)
	}
	cfg := storetest.EmptyConfig(t, to)
	if err := b.Restore(t.Context(), cfg, cfg.Blobs); err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(t.Context(), cfg, folder(t)); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a restore over another: %v", err)
	}
	return restored{storetest.OpenConfig(t, cfg), cfg.Blobs}
}

// same compares two backups, except for their description and these files.
func same(t *testing.T, a, b string, except []string) {
	t.Helper()
	left, right := files(t, a), files(t, b)
	if len(left) != len(right) || len(left) < 240 {
		t.Errorf("%d and %d files", len(left), len(right))
	}
	for name, text := range left {
		if name == "backup.json" || name == "SHA256SUMS" || slices.Contains(except, name) {
			continue
		}
		if !bytes.Equal(text, right[name]) {
			t.Errorf("%s differs:\n%.600q\n%.600q", name, firstDifference(text, right[name]), firstDifference(right[name], text))
		}
	}
}

func firstDifference(a, b []byte) []byte {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return a[max(0, i-200):min(len(a), i+200)]
}

func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		all[name], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A backup of one account contains nothing of another.
func TestBackupOfOneAccount(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			cfg := storetest.Config(t, e)
			s, _ := source(t, cfg)
			other, err := s.CreateAccount(t.Context(), "other")
			if err != nil {
				t.Fatal(err)
			}
			theirs := storetest.Inbox(t, s, func(in *store.Inbox) { in.AccountID = other.Seq })
			kept := storetest.Received(t, s, theirs)
			for n := 1; n > 0; {
				if n, err = s.CountEvents(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			storetest.Received(t, s, theirs)
			dir := backUp(t, s, cfg.Blobs, other.ID)
			to := restore(t, dir, e)
			if m, err := to.store.Message(t.Context(), other.Seq, kept.ID); err != nil || !bytes.Equal(m.Content.Raw, kept.Content.Raw) {
				t.Errorf("the message after the restore: %+v, %v", m, err)
			}
			if days, err := to.store.Stats(t.Context(), other.Seq, nil, 2); err != nil || days[0].Received+days[1].Received != 2 {
				t.Errorf("counts after the restore: %+v, %v, want 2 messages", days, err)
			}
			for name, text := range files(t, dir) {
				if bytes.Contains(text, []byte("a large mail")) {
					t.Errorf("%s has mail of another account", name)
				}
			}
			if list, err := to.store.ListAccounts(t.Context(), store.Page{Limit: 10}); err != nil || len(list.Rows) != 1 {
				t.Errorf("accounts after the restore: %+v, %v", list, err)
			}
			if _, err := write(t, s, cfg.Blobs, filepath.Join(t.TempDir(), "x"), "acc_unknown"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("an unknown account: %v", err)
			}
		})
	}
}

// blobsWith calls open before a blob is opened.
type blobsWith struct {
	store.Blobs
	open func()
}

func (b blobsWith) Open(ctx context.Context, key string) (io.ReadSeekCloser, error) {
	b.open()
	return b.Blobs.Open(ctx, key)
}

// Large mail is copied for hours; no transaction is open meanwhile, which would keep the
// log of SQLite from being emptied.
func TestBlobsAreCopiedWithoutATransaction(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, _ := source(t, cfg)
	opened := 0
	backUp(t, s, blobsWith{cfg.Blobs, func() {
		opened++
		m := storetest.Received(t, s, storetest.Inbox(t, s))
		if err := errors.Join(s.DeleteMessage(t.Context(), m.AccountID, m.ID), s.Scrub(t.Context())); err != nil {
			t.Error(err)
		}
		if log, err := os.Stat(cfg.Database + "-wal"); err != nil || log.Size() > 0 {
			t.Errorf("the log cannot be emptied while a blob is copied: %v, %v", log, err)
		}
	}}, "")
	if opened != 1 {
		t.Errorf("%d blobs were copied, want 1", opened)
	}
}

// A message whose content is missing, or has the wrong size, is named, and the rest is
// backed up and restored.
func TestBackupNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, key := source(t, cfg)
	if err := cfg.Blobs.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "backup")
	m, err := write(t, s, cfg.Blobs, dir, "")
	if err != nil || len(m.Missing) != 1 || m.Messages != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	restore(t, dir, storetest.SQLite)
}

// An incomplete or modified backup is not restored.
func TestDamagedBackupIsRefused(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, _ := source(t, cfg)
	for _, tt := range []struct {
		name, says string
		damage     func(dir string) error
	}{
		{"a flipped bit in a table", "damaged: tables/messages.jsonl", func(dir string) error {
			path := filepath.Join(dir, "tables", "messages.jsonl")
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(path, text, 0o600)
		}},
		{"a table that is gone", "not whole", func(dir string) error { return os.Remove(filepath.Join(dir, "tables", "inboxes.jsonl")) }},
		{"mail that is gone", "not whole", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "mail")) }},
		{"a list of checksums that is cut off", "not whole", func(dir string) error {
			path := filepath.Join(dir, "SHA256SUMS")
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			_, rest, _ := strings.Cut(string(text), "\n")
			return os.WriteFile(path, []byte(rest), 0o600)
		}},
		{"another format", "format is 99", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "backup.json"), []byte(`{"format":99}`), 0o600)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := backUp(t, s, cfg.Blobs, "")
			if err := tt.damage(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("open: %v, want %q", err, tt.says)
			}
		})
	}
}
