package faults_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/postroom/postroom/internal/testpg"
	"github.com/postroom/postroom/store/storetest"
)

// TestS22BlobFolderReadOnly makes the blob folder read-only under the service.
// Large mail is put off with 451 and 503 until it can be written again; small
// mail does not notice.
func TestS22BlobFolderReadOnly(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
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

// TestS22DiskFull fills the disk under the service. Mail that does not fit is put
// off with 452 and 503 until there is room again.
func TestS22DiskFull(t *testing.T) {
	t.Parallel()
	for _, e := range storetest.Engines() {
		t.Run(string(e), func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, e, "", "64m")
			for range pick(2, 10) {
				d.want(small, 250, http.StatusCreated)
				d.want(large, 250, http.StatusCreated)
				d.in.settle() // mail that is under way gives room back
				d.fill()
				d.want(large, 452, http.StatusServiceUnavailable)
				if got := d.send(larger); got != http.StatusServiceUnavailable {
					t.Errorf("a call whose request has no room is answered with %d", got)
				}
				if e == storetest.SQLite { // PostgreSQL has a disk of its own
					d.refuseSmall()
				}
				d.empty()
				d.recover()
			}
			d.audit()
		})
	}
}

// disk is an install of which a folder is a small disk of its own.
type disk struct {
	*pair
	mount string // that folder
}

// newDisk serves an install whose folder of that name, in the data folder, has
// room for so much.
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
	return &disk{newPair(installAt(t, e, dir, database)), mount}
}

// remount changes how the small disk can be used.
func (d *disk) remount(flags uintptr) {
	d.t.Helper()
	if err := syscall.Mount("", d.mount, "", syscall.MS_REMOUNT|flags, ""); err != nil {
		d.t.Fatalf("remount: %v", err)
	}
}

func (d *disk) filler() string { return filepath.Join(d.mount, "filler") }

// fill takes all the room that is left.
func (d *disk) fill() {
	d.t.Helper()
	f, err := os.Create(d.filler())
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // the write tells
	for b := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatalf("fill the disk: %v", err)
	}
}

// empty gives the room back.
func (d *disk) empty() {
	d.t.Helper()
	if err := os.Remove(d.filler()); err != nil {
		d.t.Fatal(err)
	}
}

// refuseSmall sends small mail until the last page that was free in the log of
// the file is used up, and then once more.
func (d *disk) refuseSmall() {
	d.t.Helper()
	eventually(d.t, "small mail is refused too", func() bool { return d.deliver(small) == 452 })
	d.want(small, 452, http.StatusServiceUnavailable)
}
