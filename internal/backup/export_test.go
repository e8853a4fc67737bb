package backup_test

import (
	"bytes"
	"errors"
	"fmt"
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

// TestExportRoundTripsBetweenEngines exports 300 mixed messages, imports them into the
// other engine, and back: the second and third exports are equal byte for byte, and the
// first differs from them only in what an import holds.
func TestExportRoundTripsBetweenEngines(t *testing.T) {
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
			first := export(t, s, cfg.Blobs, "")
			there := imported(t, first, other)
			second := export(t, there.store, there.blobs, "")
			back := imported(t, second, from)
			third := export(t, back.store, back.blobs, "")

			same(t, second, third, nil)
			same(t, first, second, []string{"tables/recipients.jsonl", "tables/webhook_deliveries.jsonl", "tables/emails.jsonl"})
			if h, err := there.store.Held(t.Context()); err != nil || h.Recipients == 0 {
				t.Errorf("held after the import: %+v, %v", h, err)
			}
			in := storetest.Inbox(t, back.store)
			if m := storetest.Received(t, back.store, in); m.Seq == 0 {
				t.Error("no message can be received after the import")
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

func export(t *testing.T, s *store.Store, blobs store.Blobs, account string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "export")
	x, err := backup.WriteExport(t.Context(), backup.Config{
		Store: s, Blobs: blobs, Dir: dir, Secret: secret, Fingerprint: "0123", Version: "v1", Now: time.Now,
	}, account)
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Missing) > 0 {
		t.Errorf("missing: %q", x.Missing)
	}
	return dir
}

type importedStore struct {
	store *store.Store
	blobs store.Blobs
}

func imported(t *testing.T, dir string, to storetest.Engine) importedStore {
	t.Helper()
	x, err := backup.OpenExport(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }() // it was only read
	if given, err := x.Secret(); err != nil || given != secret {
		t.Errorf("the secret is %q, %v", given, err)
	}
	cfg := storetest.EmptyConfig(t, to)
	if err := x.Import(t.Context(), cfg, cfg.Blobs); err != nil {
		t.Fatal(err)
	}
	if err := x.Import(t.Context(), cfg, cfg.Blobs); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("an import over another: %v", err)
	}
	return importedStore{storetest.OpenConfig(t, cfg), cfg.Blobs}
}

// same compares two exports, except for their description and these files.
func same(t *testing.T, a, b string, except []string) {
	t.Helper()
	left, right := files(t, a), files(t, b)
	if len(left) != len(right) || len(left) < 240 {
		t.Errorf("%d and %d files", len(left), len(right))
	}
	for name, text := range left {
		if name == "export.json" || name == "SHA256SUMS" || slices.Contains(except, name) {
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

// An export of one account contains nothing of another.
func TestExportOfOneAccount(t *testing.T) {
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
			dir := export(t, s, cfg.Blobs, other.ID)
			to := imported(t, dir, e)
			if m, err := to.store.Message(t.Context(), other.Seq, kept.ID); err != nil || !bytes.Equal(m.Content.Raw, kept.Content.Raw) {
				t.Errorf("the message after the import: %+v, %v", m, err)
			}
			if days, err := to.store.Stats(t.Context(), other.Seq, nil, 2); err != nil || days[0].Received+days[1].Received != 2 {
				t.Errorf("counts after the import: %+v, %v, want 2 messages", days, err)
			}
			for name, text := range files(t, dir) {
				if bytes.Contains(text, []byte("a large mail")) {
					t.Errorf("%s has mail of another account", name)
				}
			}
			if list, err := to.store.ListAccounts(t.Context(), store.Page{Limit: 10}); err != nil || len(list.Rows) != 1 {
				t.Errorf("accounts after the import: %+v, %v", list, err)
			}
			if _, err := backup.WriteExport(t.Context(), backup.Config{
				Store: s, Blobs: cfg.Blobs, Dir: filepath.Join(t.TempDir(), "x"), Now: time.Now,
			}, "acc_unknown"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("an unknown account: %v", err)
			}
		})
	}
}

// A message whose content is missing, or has the wrong size, is named, and the rest is
// exported and imported.
func TestExportNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	cfg := storetest.Config(t, storetest.SQLite)
	s, key := source(t, cfg)
	if err := cfg.Blobs.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "export")
	x, err := backup.WriteExport(t.Context(), backup.Config{Store: s, Blobs: cfg.Blobs, Dir: dir, Secret: secret, Now: time.Now}, "")
	if err != nil || len(x.Missing) != 1 || x.Messages != 1 {
		t.Fatalf("%+v, %v", x, err)
	}
	imported(t, dir, storetest.SQLite)
}

// A damaged export is not imported.
func TestDamagedExportIsRefused(t *testing.T) {
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
		{"another format", "format is 99", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "export.json"), []byte(`{"format":99}`), 0o600)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "export")
			_, err := backup.WriteExport(t.Context(), backup.Config{Store: s, Blobs: cfg.Blobs, Dir: dir, Secret: secret, Now: time.Now}, "")
			if err == nil {
				err = tt.damage(dir)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := backup.OpenExport(t.Context(), dir); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("open: %v, want %q", err, tt.says)
			}
		})
	}
}
