package backup_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/internal/backup"
	"github.com/postroom/postroom/store"
	"github.com/postroom/postroom/store/storetest"
)

// A whole installation has no findings.
func TestVerifyFindsNothingInAnIntactInstallation(t *testing.T) {
	t.Parallel()
	storetest.RunConfig(t, func(t *testing.T, cfg store.Config) {
		s := storetest.OpenConfig(t, cfg)
		fillMixed(t, s, cfg.Blobs)
		v, err := backup.Verify(t.Context(), s, cfg.Blobs, func(line string) { t.Error(line) })
		if err != nil || v.Damage != 0 || v.Messages < 300 || v.Unsummed > 20 {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// TestVerifyFindsFlippedBits flips one bit of an SQLite database at a time. Either the
// damage is found, or all mail reads as before. A flip in another table may be missed: few
// of them have checksums.
func TestVerifyFindsFlippedBits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := storetest.Config(t, storetest.SQLite, storetest.WithBlobs(filepath.Join(dir, "blobs")))
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s)
	for range 60 {
		storetest.Received(t, s, in)
	}
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(cfg.Database)
	if err != nil {
		t.Fatal(err)
	}
	want := contentsOf(t, cfg, cfg.Database)
	found, harmless, elsewhere := 0, 0, 0
	var missed []string
	flips := 80
	if n, err := strconv.Atoi(os.Getenv("POSTROOM_TEST_FLIPS")); err == nil {
		flips = n
	}
	for i := range flips {
		path := filepath.Join(dir, fmt.Sprintf("flipped-%d.db", i))
		text := append([]byte(nil), whole...)
		at, bit := rng.IntN(len(text)), rng.IntN(8)
		text[at] ^= 1 << bit
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		switch damage, got := verifyFile(t, cfg, path); {
		case damage != "":
			found++
		case got == want:
			harmless++
		case got.mail == want.mail:
			elsewhere++
		default:
			missed = append(missed, fmt.Sprintf("byte %d, bit %d", at, bit))
		}
		_ = os.Remove(path) // the folder goes with the test
	}
	t.Logf("%d flips: %d found, %d without effect, %d missed outside of mail, %d missed in mail", flips, found, harmless, elsewhere, len(missed))
	if len(missed) > 0 {
		t.Errorf("damaged messages are read as intact: %s", strings.Join(missed, "; "))
	}
}

// hashes are of the rows of a database: of messages and their content, and of the rest.
type hashes struct{ mail, rest string }

func contentsOf(t *testing.T, cfg store.Config, path string) hashes {
	t.Helper()
	damage, sum := verifyFile(t, cfg, path)
	if damage != "" {
		t.Fatalf("before any flip: %s", damage)
	}
	return sum
}

// verifyFile returns what is damaged in a database, and hashes of its rows.
func verifyFile(t *testing.T, cfg store.Config, path string) (damage string, sums hashes) {
	t.Helper()
	cfg.Database = path
	s, err := store.Open(t.Context(), cfg)
	if err != nil {
		return err.Error(), sums
	}
	defer func() { _ = s.Close() }() // a damaged database may not close
	var lines []string
	if _, err := backup.Verify(t.Context(), s, cfg.Blobs, func(line string) { lines = append(lines, line) }); err != nil {
		return err.Error(), sums
	}
	of, rest := sha256.New(), sha256.New()
	if _, err := s.Export(t.Context(), 0, func(r store.Row) error {
		to := rest
		if r.Table == "contents" { // with what it shows of messages
			to = of
		}
		_, err := fmt.Fprintln(to, r.Table, r.Names, r.Values)
		return err
	}); err != nil {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n"), hashes{hex.EncodeToString(of.Sum(nil)), hex.EncodeToString(rest.Sum(nil))}
}

// Damaged content is named by Verify, and is an error and not other bytes when it is
// read.
func TestDamagedMessageIsNamedAndNotServed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cfg := storetest.Config(t, storetest.SQLite, storetest.WithBlobs(dir))
	s := storetest.OpenConfig(t, cfg)
	in := storetest.Inbox(t, s)
	storetest.Received(t, s, in)
	key, sum, err := s.PutBlob(t.Context(), strings.NewReader("a large mail"), 12)
	if err != nil {
		t.Fatal(err)
	}
	m := storetest.Received(t, s, in, func(m *store.NewMessage) {
		m.Content.BlobKey, m.Content.BlobSum, m.Size = &key, sum, 12
	})
	if raw, err := s.Raw(t.Context(), m.Seq); err != nil {
		t.Fatal(err)
	} else if text, err := io.ReadAll(raw); err != nil || string(text) != "a large mail" {
		t.Fatalf("%q, %v", text, err)
	}
	if err := os.WriteFile(filepath.Join(dir, key), []byte("a latge mail"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Raw(t.Context(), m.Seq); err == nil || !strings.Contains(err.Error(), store.ErrDamaged.Error()) {
		t.Errorf("the damaged message is served: %v", err)
	}
	var lines []string
	v, err := backup.Verify(t.Context(), s, cfg.Blobs, func(line string) { lines = append(lines, line) })
	if err != nil || v.Damage != 1 || len(lines) != 1 || !strings.Contains(lines[0], m.ID) {
		t.Errorf("%+v, %v: %q", v, err, lines)
	}
}
