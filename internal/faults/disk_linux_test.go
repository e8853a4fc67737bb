package faults_test

import (
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

// TestReceivedMailLeavesAReserve receives mail until the disk has only its reserve left.
// More is deferred with 452, while sending and deleting go on, until there is space again.
func TestReceivedMailLeavesAReserve(t *testing.T) {
	t.Parallel()
	d := newDisk(t, storetest.SQLite, "", "64m") // PostgreSQL is on another disk
	if err := os.WriteFile(d.filler(), make([]byte, 32<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{large, small} {
		waittest.Until(t, "mail is deferred", func() bool { return d.deliver(size) == 452 })
	}
	var left syscall.Statfs_t
	if err := syscall.Statfs(d.mount, &left); err != nil {
		t.Fatal(err)
	}
	if free := left.Bavail * uint64(left.Bsize); free < 5<<20 { //nolint:gosec // a size of blocks is positive
		t.Errorf("%d KiB are left of a reserve of 6.4 MiB", free>>10)
	}
	d.want(small, 452, http.StatusCreated)
	d.empty()
	d.recover()
	d.audit()
}

// disk is an installation with one folder on a small disk of its own.
type disk struct {
	*pair
	mount string // path of that folder
}

// newDisk serves an installation whose folder name, inside the data folder, is a disk
// of that size.
func newDisk(t *testing.T, e storetest.Engine, name, size string) *disk {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount the small disk that this test fills")
	}
	dir := filepath.Join(t.TempDir(), "data")
	mount := filepath.Join(dir, name)
	if err := os.MkdirAll(mount, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(mount, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", mount, err)
		}
	})
	database := filepath.Join(dir, "postroom.db")
	if e == storetest.PostgreSQL {
		database = testpg.Schema(t)
	}
	return &disk{newPair(installationAt(t, e, dir, database)), mount}
}

func (d *disk) filler() string { return filepath.Join(d.mount, "filler") }

// empty frees the space again.
func (d *disk) empty() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}
