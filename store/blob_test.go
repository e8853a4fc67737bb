package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postroom/postroom/store"
)

// A folder that someone removes by hand is made again, if what holds it is
// still there.
func TestBlobFolderRecreatesARemovedFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "blobs")
	b, err := store.OpenBlobFolder(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	used := map[string]bool{}
	for again := 0; again < 3; { // keys choose among 1024 folders
		key, err := b.Put(t.Context(), strings.NewReader("mail"), 4)
		if err != nil {
			t.Fatalf("after %d removed folders, %d of them created again: %v", len(used), again, err)
		}
		folder := filepath.Dir(filepath.FromSlash(key))
		if got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(key))); err != nil || string(got) != "mail" {
			t.Fatalf("kept %q, error %v", got, err)
		}
		if used[folder] {
			again++
		}
		used[folder] = true
		if err := os.RemoveAll(filepath.Join(dir, folder)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if key, err := b.Put(t.Context(), strings.NewReader("mail"), 4); err == nil {
		t.Errorf("stored %s in a folder that does not exist", key)
	}
}
