package faults_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/internal/waittest"
	"github.com/postroom/postroom/store/storetest"
)

// TestLargeMailIsDeferredWhileTheBlobFolderIsReadOnly remounts the blob folder
// read-only under the service. Large mail is deferred with 451 and 503 until the
// folder is writable again, and small mail is not affected. Row S22 of
// docs/testing.md.
func TestLargeMailIsDeferredWhileTheBlobFolderIsReadOnly(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, e, "blobs", "32m")
			for range pick(2, 10) {
				d.want(small, 250, http.StatusCreated)
				d.want(large, 250, http.StatusCreated)
				d.remount(syscall.MS_RDONLY)
				d.want(small, 250, http.StatusCreated)
				d.want(large, 451, http.StatusServiceUnavailable)
				d.remount(0)
				d.want(large, 250, http.StatusCreated)
			}
			d.audit()
		})
	}
}

// TestMailIsDeferredWhileTheDiskIsFull fills the disk under the service. Mail that
// does not fit is deferred with 452 and 503 until there is space again. Rows S22 and
// C6 of docs/testing.md.
func TestMailIsDeferredWhileTheDiskIsFull(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines(t) {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, e, "", "64m")
			for range pick(2, 10) {
				d.want(small, 250, http.StatusCreated)
				d.want(large, 250, http.StatusCreated)
				d.in.settle() // finished deliveries free space
				d.fill()
				d.want(large, 452, http.StatusServiceUnavailable)
				if got := d.send(larger); got != http.StatusServiceUnavailable {
					t.Errorf("a call whose request does not fit returns %d", got)
				}
				if e == storetest.SQLite { // PostgreSQL is on another disk
					d.refuseSmall()
				}
				d.empty()
				d.recover()
			}
			d.audit()
		})
	}
}

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

// remount changes the mount flags of the small disk.
func (d *disk) remount(flags uintptr) {
	d.t.Helper()
	if err := syscall.Mount("", d.mount, "", syscall.MS_REMOUNT|flags, ""); err != nil {
		d.t.Fatalf("remount: %v", err)
	}
}

func (d *disk) filler() string { return filepath.Join(d.mount, "filler") }

// fill uses all the space that is left.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.Create(d.filler())
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // the write reports errors
	for b := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("fill the disk: %v", err)
	}
}

// empty frees the space again.
func (d *disk) empty() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}

// refuseSmall sends small mail until the last free page of the write-ahead log is
// used, and then one more.
func (d *disk) refuseSmall() {
	d.t.Helper()
	waittest.Until(d.t, "small mail is refused too", func() bool { return d.send(small) == http.StatusServiceUnavailable })
	d.want(small, 452, http.StatusServiceUnavailable)
}
